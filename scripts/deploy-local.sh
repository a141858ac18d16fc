#!/usr/bin/env bash
# Builds the image here and runs it with .env.local, as confined as in a pod.
#
#   scripts/deploy-local.sh          build, start, wait until it is healthy
#   scripts/deploy-local.sh --stop   stop and remove the container
#
# CONTAINER_ENGINE names the engine; else docker where it is, else podman.
set -euo pipefail
cd "$(dirname "$0")/.."

AGENT=${AGENT:-support-tickets-agent}
PORT=${PORT:-8000}
WAIT=${WAIT:-60}                          # seconds until it has to be healthy

fail() { echo "deploy-local: $*" >&2; exit 1; }
usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }

engine=${CONTAINER_ENGINE:-}
if [ -z "$engine" ]; then
  for candidate in docker podman; do
    if command -v "$candidate" >/dev/null; then engine=$candidate; break; fi
  done
fi
[ -n "$engine" ] || fail "neither docker nor podman is on PATH"
command -v "$engine" >/dev/null || fail "$engine is not on PATH"

case ${1:-} in
  "") ;;
  --stop) "$engine" rm --force "$AGENT"; exit 0 ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

[ -r .env.local ] || fail "there is no .env.local; begin with: cp .env.local.example .env.local"
version=$(cat .image-version)
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
"$engine" build --build-arg "VERSION=$version" --build-arg "COMMIT=$commit" \
  --tag "$AGENT:$version" --tag "$AGENT:latest" .

"$engine" rm --force "$AGENT" >/dev/null 2>&1 || true
# The port is open on this machine alone. Inside the container the agent's own
# address, its state and its commit are fixed, whatever .env.local says of a run
# without one.
"$engine" run --detach --name "$AGENT" \
  --env-file .env.local --env AGENT_BIND_ADDRESS=0.0.0.0:8000 \
  --env WEIR_STATE_DIR=/var/lib/weir --env "AGENT_BUILD_COMMIT=$commit" \
  --publish "127.0.0.1:$PORT:8000" \
  --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --user 1001:1001 \
  --volume "$AGENT-cache:/app/plugins/dist/.cache" --volume "$AGENT-state:/var/lib/weir" \
  --add-host host.docker.internal:host-gateway \
  "$AGENT:$version"

for ((second = 0; second < WAIT; second++)); do
  if "$engine" exec "$AGENT" /usr/local/bin/weir probe http http://127.0.0.1:8000/health >/dev/null 2>&1; then
    echo "deploy-local: $AGENT $version is healthy at http://127.0.0.1:$PORT"
    exit 0
  fi
  sleep 1
done
"$engine" logs "$AGENT" >&2 || true
fail "not healthy within ${WAIT}s; its log stands above"
