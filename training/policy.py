"""A policy over candidates: one shared network scores each of them, whatever their number and order.

It fits SB3 as a ``MaskableActorCriticPolicy`` whose ``mlp_extractor`` returns one score for each candidate and whose
``action_net`` is the identity. Permuting the candidates permutes the scores; the critic reads a mean over them.
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from dynsteer_gym.envs.discrete import CONTEXT, ERROR_AT, FEATURES, OVERLAPS_AT
from dynsteer_gym.envs.features import OVERLAPS
from dynsteer_gym.training.buffer import Packed, pack

__all__ = ["CandidatePolicy", "CandidateScorer"]

_MASKED = -1e8


class CandidateScorer(nn.Module):
    """Scores each candidate from its features, the context and a mean over all candidates.

    Only rows that are taken are computed, so that the cost goes with the candidates on offer and not with the size of
    the action space.
    """

    def __init__(self, size: int, hidden: int) -> None:
        """Makes the network.

        Args:
            size: Candidates of the action space.
            hidden: Width of the hidden layers.
        """
        super().__init__()
        self.size = size
        self.latent_dim_pi = size
        self.latent_dim_vf = hidden
        self.context = nn.Linear(CONTEXT, hidden)
        self.candidate = nn.Linear(FEATURES, hidden, bias=False)
        self.pooled = nn.Linear(hidden, hidden)
        self.scored = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1)
        self.reading = nn.Linear(FEATURES, 1, bias=False)
        self.valued = nn.Linear(2 * hidden, hidden)

    def score_packed(self, packed: Packed) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of packed candidates by position, and the critic's features.

        Args:
            packed: ``batch`` observations.

        Returns:
            Scores of shape ``(batch, size)``, hugely negative where no candidate is, and shape ``(batch, hidden)``.
        """
        batch = packed.context.shape[0]
        owner = packed.places // self.size
        context = self.context(packed.context)
        hidden = torch.addmm(context.index_select(0, owner), packed.rows, self.candidate.weight.t()).relu_()
        total = hidden.new_zeros(batch, hidden.shape[1]).index_add_(0, owner, hidden)
        mean = total / packed.counts.clamp(min=1).unsqueeze(1)
        hidden = torch.addmm(self.pooled(mean).index_select(0, owner), hidden, self.scored.weight.t()).relu_()
        taken = (self.score(hidden) + self.reading(packed.rows)).squeeze(1)
        scores = taken.new_full((batch * self.size,), _MASKED).index_copy(0, packed.places, taken).view(batch, self.size)
        return scores, torch.relu(self.valued(torch.cat([mean, context], dim=1)))

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same of flat observations, shape ``(batch, CONTEXT + size * FEATURES)``."""
        return self.score_packed(pack(features))

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """The scores alone, shape ``(batch, size)``."""
        return self(features)[0]

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """The critic's features alone, shape ``(batch, hidden)``."""
        return self(features)[1]


class CandidatePolicy(MaskableActorCriticPolicy):
    """The policy for ``interface="discrete"``: pass it to ``MaskablePPO`` in the place of ``"MlpPolicy"``."""

    def __init__(self, *args: Any, hidden: int = 96, **kwargs: Any) -> None:
        """Makes the policy.

        Args:
            *args: What SB3 passes: observation space, action space, learning rate schedule.
            hidden: Width of the hidden layers.
            **kwargs: Further arguments of ``MaskableActorCriticPolicy``.
        """
        self.hidden = hidden
        super().__init__(*args, **kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "hidden": self.hidden}

    def _build(self, lr_schedule: Schedule) -> None:
        self.mlp_extractor = CandidateScorer(int(self.action_space.n), self.hidden)  # type: ignore[assignment, attr-defined]
        self.action_net = nn.Identity()
        self.value_net = nn.Linear(self.hidden, 1)
        if self.ortho_init:
            for module in self.mlp_extractor.modules():
                if isinstance(module, nn.Linear):
                    nn.init.orthogonal_(module.weight, gain=2**0.5)
                    if module.bias is not None:
                        nn.init.zeros_(module.bias)
            nn.init.orthogonal_(self.mlp_extractor.score.weight, gain=0.01)
            self._read_first()
            nn.init.orthogonal_(self.value_net.weight, gain=1.0)
            nn.init.zeros_(self.value_net.bias)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def evaluate_actions(self, obs: Any, actions: torch.Tensor, action_masks: Any = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Values, log likelihoods of the actions and entropies; packed observations need no masks."""
        if not isinstance(obs, Packed):
            return super().evaluate_actions(obs, actions, action_masks)
        scorer: CandidateScorer = self.mlp_extractor  # type: ignore[assignment]
        scores, valued = scorer.score_packed(obs)
        logs = torch.log_softmax(scores, dim=1)
        entropy = -(logs.exp() * logs).sum(1)
        return self.value_net(valued), logs.gather(1, actions.long().view(-1, 1)).squeeze(1), entropy

    def _read_first(self) -> None:
        """Begins with a reader's prior: try what the words of the request, of the last error and of the user's reply speak of.

        Without it the way out of a failed precondition, a tool that the request never mentions, is too seldom tried.
        """
        weight = self.mlp_extractor.reading.weight  # type: ignore[union-attr]
        nn.init.zeros_(weight)
        with torch.no_grad():
            weight[0, OVERLAPS_AT : OVERLAPS_AT + OVERLAPS] = 1.0
            weight[0, ERROR_AT : ERROR_AT + 2] = 5.0
