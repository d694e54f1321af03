"""What the containers are told is what the code reads; they are built where Docker is."""

import re
import subprocess
from shutil import which

import pytest
import yaml

from tests.docs.markdown import ROOT

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
READ_BY_CODE = set(
    re.findall(r"\bGPUEXPLORE_[A-Z_]+", "".join(path.read_text() for path in (ROOT / "gpuexplore").rglob("*.py")))
)


def test_every_service_is_built_from_a_stage_that_exists():
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.M))

    assert set(OURS) == {"web", "supervisor"}
    assert {service["build"]["target"] for service in OURS.values()} <= stages


def test_a_stage_starts_a_program_of_this_repository():
    commands = dict(re.findall(r"^FROM base AS (\w+)\n(?:EXPOSE \d+\n)?CMD \[(.+)\]$", DOCKERFILE, re.M))

    assert '"gpuexplore.jobs.supervisor"' in commands["supervisor"]
    assert '"app.py"' in commands["web"]
    assert (ROOT / "app.py").exists()


@pytest.mark.parametrize("name", OURS)
def test_every_variable_of_a_service_is_one_that_the_code_reads(name):
    variables = {variable for variable in OURS[name]["environment"] if variable.startswith("GPUEXPLORE_")}

    assert variables
    assert variables - READ_BY_CODE == set()


def test_the_web_server_leaves_measuring_to_the_other_container():
    assert SERVICES["web"]["environment"]["GPUEXPLORE_SUPERVISOR"] == "external"


def test_only_the_web_server_is_published_and_only_to_this_machine():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published == {"web": ["127.0.0.1:8501:8501"]}


def test_every_volume_is_declared():
    used = {volume.partition(":")[0] for service in SERVICES.values() for volume in service["volumes"]}

    assert used == set(COMPOSE["volumes"])


def test_the_build_argument_for_gpus_is_one_the_dockerfile_takes():
    gpu = yaml.safe_load((ROOT / "compose.gpu.yaml").read_text(encoding="utf-8"))
    given = {name: set(service["build"]["args"]) for name, service in gpu["services"].items()}

    assert set(given) == set(OURS)
    assert set().union(*given.values()) == set(re.findall(r"^ARG (\w+)=", DOCKERFILE, re.M))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["web", "supervisor"])
def test_the_image_is_built(target):
    if not which("docker") or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker daemon answers here")
    built = subprocess.run(
        ["docker", "build", "--target", target, str(ROOT)], capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stderr
