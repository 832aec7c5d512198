"""The page about deployment names options that exist."""

import json
import pathlib
import re
import tomllib

from anchorline.cli.serve import serve
from anchorline.studio import server

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deployment.md"
OPTIONS = serve.options


def test_every_option_of_the_deployment_page_exists():
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"anchorline serve (.*(?:\\\n.*)*)", text) + re.findall(
        r"^(?:ENTRYPOINT|CMD) .*", text, re.M
    )
    assert len(commands) >= 4
    known = {name.replace("_", "-") for name in OPTIONS}
    used = set(re.findall(r"--([a-z-]+)", " ".join(commands)))
    assert {"behind-proxy", "user-header", "audit-log", "root-path", "allow-host"} <= used
    assert used <= known


def test_the_limits_of_the_deployment_page_are_the_servers():
    text = PAGE.read_text(encoding="utf-8")
    assert f"{server._READ_SECONDS:g} s, then the connection is closed" in text


def test_the_container_file_installs_copies_and_starts_what_exists():
    """No container is built here, so every name in the file is compared with what it refers to."""
    lines = re.search(r"```dockerfile\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1].splitlines()
    parts = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    names = " ".join(name for name, _ in parts)
    assert names == "FROM RUN RUN USER COPY EXPOSE HEALTHCHECK ENTRYPOINT CMD"
    image, install, useradd, user, copy, port, health, entry, more = (rest for _, rest in parts)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = re.search(r"python:3\.(\d+)", image)[1]
    assert f"Programming Language :: Python :: 3.{python}" in project["classifiers"]
    name, extras = re.search(r"'(\w+)\[([\w,]+)\]'", install).groups()
    assert name == project["name"]
    required = " ".join(part for extra in extras.split(",") for part in project["optional-dependencies"][extra])
    assert "anchorline[cli]" in required  # which has pyarrow for the table
    assert "onnxruntime" in required
    assert "pyarrow" in " ".join(project["optional-dependencies"]["cli"])
    assert useradd.endswith(f" {user}")
    *options, model, data, folder = copy.split()
    assert options == [f"--chown={user}"]
    command = json.loads(entry)
    assert command[0] in project["scripts"]
    assert command[1:5] == ["serve", f"{folder}{model}", "--data", f"{folder}{data}"]
    assert json.loads(more)[0] == "--target"
    assert int(port) == OPTIONS["port"].default
    assert f"127.0.0.1:{port}/health" in json.loads(health.removeprefix("CMD "))[2]
