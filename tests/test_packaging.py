"""A wheel holds the linked packages, whether it is built from the tree or from the sdist."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")}


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the source tree")
def test_wheels_from_tree_and_sdist_are_equal_and_whole(tmp_path):
    code = (
        "import os, sys; from hatchling import build; os.chdir(sys.argv[1]); "
        "print(build.build_wheel(sys.argv[2])); print(build.build_sdist(sys.argv[2]))"
    )
    run = [sys.executable, "-c", code]
    subprocess.run([*run, str(ROOT), str(tmp_path)], check=True, capture_output=True)
    (wheel,), (sdist,) = list(tmp_path.glob("*.whl")), list(tmp_path.glob("*.tar.gz"))
    shutil.unpack_archive(sdist, tmp_path / "src", filter="data" if sys.version_info >= (3, 12) else None)
    (tree,) = (tmp_path / "src").iterdir()
    subprocess.run([*run, str(tree), str(tmp_path / "again")], check=True, capture_output=True, env={**os.environ})
    (again,) = (tmp_path / "again").glob("*.whl")
    held = contents(wheel)
    assert held == contents(again)
    for name in ("envs/sandbox/env.py", "rewards/function.py", "training/runner.py", "py.typed", "cli.py"):
        assert f"dynsteer_gym/{name}" in held
    assert not any(name.startswith(("envs/", "rewards/", "training/", "tests/")) for name in held)
