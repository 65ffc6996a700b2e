"""The command line, as a stranger uses it."""

import json

from typer.testing import CliRunner

from dynsteer_gym import __version__
from dynsteer_gym.cli import app

runner = CliRunner()


def test_version():
    assert runner.invoke(app, ["--version"]).output.strip() == __version__


def test_scenarios_lists_at_least_120():
    lines = runner.invoke(app, ["scenarios", "--json"]).output.splitlines()
    entries = [json.loads(line) for line in lines]
    assert len({entry["name"] for entry in entries}) == len(entries) >= 120


def test_blueprint_prints_and_draws(tmp_path):
    result = runner.invoke(app, ["blueprint", "send_message/0", "--dot", str(tmp_path / "g.dot"), "--svg", str(tmp_path / "g.svg")])
    assert result.exit_code == 0
    assert "search_contacts" in result.output
    assert (tmp_path / "g.dot").read_text().startswith("digraph")
    assert (tmp_path / "g.svg").read_text().startswith("<svg")


def test_run_plays_an_expert_and_writes_a_report(tmp_path):
    result = runner.invoke(app, ["run", "get_number/0", "--expert", "--report", str(tmp_path / "r.json")])
    assert result.exit_code == 0
    assert "native score 1.0" in result.output
    assert json.loads((tmp_path / "r.json").read_text())["score"] == 1.0


def test_run_plays_an_agent_script_and_the_keyboard(tmp_path):
    script = tmp_path / "agent.py"
    script.write_text("def act(observation, info):\n    return 'I cannot do that.'\n")
    assert "native score 0.0" in runner.invoke(app, ["run", "get_number/0", "--agent", str(script)]).output
    assert "Tools" in runner.invoke(app, ["run", "get_number/0"], input="nothing_here()\n\n").output


def test_an_unknown_scenario_is_named_with_near_matches():
    result = runner.invoke(app, ["blueprint", "send_mesage/0"])
    assert result.exit_code != 0
    assert "send_message/0" in str(result.exception)
