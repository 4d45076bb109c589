#!/usr/bin/env bash
# Brings the compose stack up from nothing, in both tiers, and checks it: the site judges problem 200, the self-test passes,
# and the exploits run inside the worker's container.
#
#     docker/check.sh [SCRATCH]
#
# Uses the Docker engine that is there, or, on a Debian machine as root, a private one in SCRATCH (default: a new folder under
# /tmp). Where python:3.11-slim can't be pulled, a Debian base with Debian's own Python 3.11 stands in for it, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=${1:-$(mktemp -d)}
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 COMPOSE_PROJECT_NAME=shouxie-check PORT=${PORT:-18000}
COURSE_TOKEN=$(head -c 18 /dev/urandom | base64 | tr '+/' '-_')
export COURSE_TOKEN
base=python:3.11-slim
python=${PYTHON:-.venv/bin/python}
engine_pid=

say() { echo "[$SECONDS s] $*"; }

# -- an engine ------------------------------------------------------------------------------------------------------------

private_engine() {
  apt="apt-get -qq -o DPkg::Lock::Timeout=300"
  # One by one: given several names, `command -v` is content with any of them.
  if ! (command -v dockerd && command -v iptables && command -v mmdebstrap) >/dev/null; then
    $apt update
    $apt install -y --no-install-recommends docker.io iptables mmdebstrap >/dev/null
  fi
  export DOCKER_CONFIG=$scratch/config DOCKER_HOST=unix://$scratch/docker.sock
  mkdir -p "$DOCKER_CONFIG/cli-plugins"
  docker compose version >/dev/null 2>&1 || compose_plugin
  # In a session of its own: Ctrl-C must reach this script first, which then ends the engine.
  setsid dockerd --data-root "$scratch/data" --exec-root "$scratch/exec" --pidfile "$scratch/engine.pid" \
    -H "$DOCKER_HOST" >"$scratch/engine.log" 2>&1 &
  engine_pid=$scratch/engine.pid
  for _ in $(seq 120); do
    docker info >/dev/null 2>&1 && return
    sleep 0.25
  done
  tail -20 "$scratch/engine.log" >&2
  echo "the private Docker engine did not start" >&2
  return 1
}

# Debian 12 has compose only in version 1; the files of the next Debian's packages run on it.
compose_plugin() {
  local site lists=$scratch/next
  site=$(apt-get indextargets --format '$(SITE) $(CODENAME)' | awk '$2 == "bookworm" {print $1; exit}')
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site trixie main" >"$lists/sources.list"
  local options=(-qq -o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache")
  apt-get "${options[@]}" update
  (
    cd "$lists"
    apt-get "${options[@]}" download docker-compose docker-buildx 2>/dev/null
    for package in *.deb; do dpkg-deb -x "$package" files; done
    cp files/usr/libexec/docker/cli-plugins/* "$DOCKER_CONFIG/cli-plugins/"
  )
}

# -- a base image ---------------------------------------------------------------------------------------------------------

base_image() {
  docker image inspect "$base" >/dev/null 2>&1 && return
  docker pull -q "$base" >/dev/null 2>&1 && return
  say "$base cannot be pulled: Debian's own Python 3.11 stands in"
  local site context=$scratch/base
  site=$(apt-get indextargets --format '$(SITE) $(CODENAME)' | awk '$2 == "bookworm" {print $1; exit}')
  mkdir -p "$context/wheels"
  cp /etc/ssl/certs/ca-certificates.crt "$context/roots.crt"
  # The CPU build that pip finds on this machine: inside a container it would take the CUDA build of several GB.
  python3 -m pip download -q --no-deps -d "$context/wheels" "$(grep '^torch==' requirements.lock | cut -d' ' -f1)"
  # On a disk without device nodes a base can't be unpacked, on tmpfs it can.
  local memory
  memory=$(mktemp -d)
  mount -t tmpfs -o size=2g tmpfs "$memory"
  TMPDIR=$memory mmdebstrap -q --variant=minbase --include=ca-certificates,python3,python3-venv,python3-pip \
    bookworm "$memory/base.tar" "$site"
  docker import "$memory/base.tar" shouxie-base >/dev/null
  umount "$memory"
  rmdir "$memory"
  cat >"$context/Dockerfile" <<'BASE'
FROM shouxie-base
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED && ln -s /usr/bin/python3 /usr/local/bin/python
COPY roots.crt /etc/ssl/certs/ca-certificates.crt
COPY wheels /opt/wheels
RUN printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\nfind-links = /opt/wheels\n' >/etc/pip.conf
ENV LANG=C.UTF-8 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
CMD ["python3"]
BASE
  docker build -q -t "$base" "$context" >/dev/null
}

# -- the end --------------------------------------------------------------------------------------------------------------

files=(-f docker-compose.yml)

finish() {
  local status=$?
  if [ "$status" != 0 ]; then docker compose "${files[@]}" logs --tail 60 2>&1 || true; fi
  docker compose "${files[@]}" down -v -t 5 >/dev/null 2>&1 || true
  if [ -n "$engine_pid" ]; then stop_engine; fi
  say "stopped, status $status"
  exit "$status"
}

stop_engine() {
  kill "$(cat "$engine_pid")" 2>/dev/null || return 0
  for _ in $(seq 80); do
    [ -e "$engine_pid" ] || break
    sleep 0.25
  done
  # What an engine leaves in the host's network when it goes.
  iptables -P FORWARD ACCEPT || true
  local table chain link rule
  for table in filter nat; do
    iptables -t $table -S | grep -E '^-A (FORWARD|PREROUTING|OUTPUT|POSTROUTING) ' | grep -E 'DOCKER|docker0|br-[0-9a-f]{12}' |
      while read -r rule; do eval "iptables -t $table -D ${rule#-A }" || true; done
    for chain in $(iptables -t $table -S | sed -n 's/^-N \(DOCKER.*\)/\1/p'); do iptables -t $table -F "$chain" || true; done
    for chain in $(iptables -t $table -S | sed -n 's/^-N \(DOCKER.*\)/\1/p'); do iptables -t $table -X "$chain" || true; done
  done
  for link in $(ls /sys/class/net | grep -E '^(docker0|br-[0-9a-f]{12})$'); do ip link del "$link" || true; done
}

trap finish EXIT

# -- the check ------------------------------------------------------------------------------------------------------------

docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1 || private_engine
say "engine up, compose $(docker compose version --short)"
base_image
docker compose build -q
say "image built: $(docker image inspect -f '{{.Size}}' shouxie-mini-sglang | awk '{printf "%.1f GB", $1 / 1e9}')"

for tier in medium strong; do
  files=(-f docker-compose.yml)
  [ "$tier" = medium ] || files+=(-f docker/strong.yml)
  docker compose "${files[@]}" up -d --wait --wait-timeout 240
  docker compose "${files[@]}" exec -T worker python -m judge.selftest
  "$python" tools/site_check.py --base "http://127.0.0.1:$PORT" --token "$COURSE_TOKEN" --tier "$tier"
  docker compose "${files[@]}" exec -T worker python -m pytest -q -p no:cacheprovider tests/exploits -k "$tier"
  docker compose "${files[@]}" down -v -t 5
  say "tier $tier checked"
done
