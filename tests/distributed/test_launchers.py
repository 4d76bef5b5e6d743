"""The lines that docs/scale.md gives to launchers, as two processes with what the launchers tell them."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
PROCESSES = 2
PORTS = 2**12  # the last ones: of these JAX takes one by the number of the job


def block(title: str) -> str:
    """The first block of code below a title of the page."""
    found = re.search(rf"### {title}\n.*?```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, title
    return found[1]


def manifest() -> tuple[dict[str, Any], dict[str, Any]]:
    service, job = yaml.safe_load_all(block("Kubernetes"))
    return service, job


def command(line: str, launcher: str = "") -> list[str]:
    """What comes behind the launcher, by this Python."""
    words = shlex.split(line.replace("\\\n", " "))
    program = words.index("lnkernel")
    assert words[:program] == launcher.split()
    return [sys.executable, "-m", "lnkernel.cli", *words[program + 1 :]]


def slurm(job: int, process: int) -> tuple[list[str], dict[str, str]]:
    line = block("SLURM").split("\nsrun ")[1].replace("$SCRATCH/", "")
    said = {"JOB_ID": job, "NTASKS": PROCESSES, "PROCID": process, "LOCALID": process}
    variables = {f"SLURM_{name}": str(value) for name, value in said.items()}
    return command(line), variables | {"SLURM_STEP_NODELIST": "localhost"}


def open_mpi(job: int, process: int) -> tuple[list[str], dict[str, str]]:
    said = {"SIZE": PROCESSES, "RANK": process, "LOCAL_RANK": process}
    variables = {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in said.items()}
    uri = f"{job * 2**12}.0;tcp://127.0.0.1:34911"
    return command(block("Open MPI"), "mpirun -n 8"), variables | {"OMPI_MCA_orte_hnp_uri": uri}


def kubernetes(job: int, process: int) -> tuple[list[str], dict[str, str]]:
    (container,) = manifest()[1]["spec"]["template"]["spec"]["containers"]
    (line,) = container["args"]
    port = 2**16 - PORTS + job
    for old, new in (
        ("lnkernel-0.lnkernel:1234", f"127.0.0.1:{port}"),
        ("--processes 8", f"--processes {PROCESSES}"),
        ("$JOB_COMPLETION_INDEX", str(process)),
        ("/data/", ""),
    ):
        assert old in line
        line = line.replace(old, new)
    return command(line), {}


def free_job() -> int:
    """The number of a job whose port is free."""
    for job in range(PORTS):
        with socket.socket() as free:
            if free.connect_ex(("127.0.0.1", 2**16 - PORTS + job)):
                return job
    raise AssertionError("no port is free")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [slurm, open_mpi, kubernetes])
def test_the_line_of_a_launcher(launcher: Callable[..., Any], tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x, new = draw.normal(size=(60, 2)), draw.normal(size=(4, 2))
    table = np.column_stack([x, np.sin(x[:, 0])])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", header="a,b,y", comments="")
    np.savetxt(tmp_path / "new.csv", new, delimiter=",", header="a,b", comments="")
    job = free_job()
    running = []
    for process in range(PROCESSES):
        line, variables = launcher(job, process)
        environment = os.environ | variables
        running.append(
            subprocess.Popen(line, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        )
    for one in running:
        _, complaint = one.communicate(timeout=600)
        assert one.returncode == 0, complaint
    found = np.loadtxt(tmp_path / "predictions.csv", skiprows=1)
    alone = "lnkernel fit data.csv --target y --noise 0.1 --predict new.csv --out one.csv"
    subprocess.run(command(alone), cwd=tmp_path, check=True, capture_output=True)
    np.testing.assert_allclose(found, np.loadtxt(tmp_path / "one.csv", skiprows=1), rtol=1e-12)


def test_the_manifest_fits_together() -> None:
    """The processes are as many as the job has, and the first is where the service puts it."""
    service, job = manifest()
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    (line,) = container["args"]
    name, subdomain = job["metadata"]["name"], service["metadata"]["name"]
    assert pod["subdomain"] == subdomain and service["spec"]["selector"] == {"job-name": name}
    assert service["spec"]["clusterIP"] == "None" and spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"]
    assert f"--coordinator {name}-0.{subdomain}:" in line
    assert f"--processes {spec['parallelism']} --process $JOB_COMPLETION_INDEX" in line
    (volume,), (mount,) = pod["volumes"], container["volumeMounts"]
    assert volume["name"] == mount["name"] and f"{mount['mountPath']}/data.csv" in line
