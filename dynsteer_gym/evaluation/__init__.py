"""The streaming evaluator: settlement, windows, scores, stops (DynSTEER sections 3.3 to 3.5, Algorithm 1).

* ``evidence``: what has been said and returned, and what each closed action did wrong.
* ``matching``: the ready frontier (eq. 4) and the settlement predicate.
* ``windows``: the evidence window between a milestone and its dominator (eq. 5).
* ``policy``: stage score (eq. 6), weights (eq. 7), tiers (eqs. 8 and 9).
* ``stopping``: the stop criteria.
* ``evaluator``: Algorithm 1, event by event.
* ``report``: the auditable record.
"""
