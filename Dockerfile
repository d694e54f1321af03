# The web server (--target web, the default) and the process that measures (--target supervisor); docs/deployment.md.
# Alone, the web server starts that process itself. Its user is 1000, as hosts such as Hugging Face run it; docs/hosting.md.
# For NVIDIA GPUs, whose host needs the driver and the NVIDIA Container Toolkit:
#   --build-arg BASE=nvidia/cuda:13.0.1-base-ubuntu24.04 --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130
# A driver before 580: BASE=nvidia/cuda:12.9.1-base-ubuntu24.04, TORCH_INDEX=https://download.pytorch.org/whl/cu129, CUDA=12

ARG BASE=debian:bookworm-slim

FROM ${BASE} AS base
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/venv \
    && useradd --create-home --user-group --uid 1000 --non-unique gpuexplore \
    && install --directory --owner=gpuexplore --group=gpuexplore /data
ENV PATH=/opt/venv/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    GPUEXPLORE_HOME=/data \
    FORWARDED_ALLOW_IPS=""
WORKDIR /app
ARG CUDA=13
COPY requirements requirements
RUN pip install --no-cache-dir --extra-index-url "${TORCH_INDEX}" --constraint requirements/lock.txt torch
COPY pyproject.toml hatch_build.py README.md LICENSE NOTICE ./
COPY LICENSES LICENSES
COPY gpuexplore/__init__.py gpuexplore/
RUN pip install --no-cache-dir --constraint requirements/lock.txt torch --editable ".[app,cuda${CUDA},postgresql,sass,torch]"
COPY . .
# compiled here, for its user may not write there: a worker would compile 400 modules whenever it starts
RUN python3 -m compileall -q gpuexplore pages
USER gpuexplore
VOLUME /data

FROM base AS supervisor
CMD ["python", "-m", "gpuexplore.jobs.supervisor"]

FROM base AS web
EXPOSE 8501
CMD ["streamlit", "run", "app.py", "--server.address", "0.0.0.0"]
