"""What ``dynsteer measure`` counts."""

from dynsteer_gym.envs.sandbox.rivals import FAULTS, HARMFUL
from dynsteer_gym.measure import _share, _summary, measure_suite


def test_a_summary_counts_by_hand():
    runs = [
        {"success": True, "stage_score": 1.0, "stopped": None, "turns": 5, "located": None},
        {"success": True, "stage_score": 0.5, "stopped": 3, "turns": 5, "located": True},
        {"success": False, "stage_score": 0.0, "stopped": 4, "turns": 10, "located": False},
        {"success": False, "stage_score": 0.5, "stopped": None, "turns": 10, "located": True},
    ]
    assert _summary(runs) == {
        "runs": 4,
        "success": 0.5,
        "stage_score": 0.5,
        "stopped": 0.5,
        "false_stops": 0.5,
        "steps_saved": 0.3,
        "located": 0.667,
    }
    assert _share(0, 0) is None


def test_experts_and_rivals_of_the_suite_are_measured_to_their_native_end():
    figures = measure_suite("test", limit=40)
    assert figures["expert"]["success"] == 1.0
    assert figures["expert"]["located"] is None
    assert set(figures) == {"expert", *FAULTS}
    for fault in FAULTS:
        entry = figures[fault]
        assert entry["runs"] > 0
        if fault in HARMFUL:
            assert entry["success"] == 0.0
        assert entry["stage_score"] <= figures["expert"]["stage_score"] + 0.25
    assert figures == measure_suite("test", limit=40)
