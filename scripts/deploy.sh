#!/usr/bin/env bash
# Builds the image in the registry and rolls it out.
#
#   scripts/deploy.sh               the next patch version
#   scripts/deploy.sh --tag 1.4.0   this version
#
# .image-version, the image's tag and service.version in k8s/deployment.yaml are
# the same version afterwards: commit them with the change that they ship.
set -euo pipefail
cd "$(dirname "$0")/.."

AGENT=${AGENT:-support-tickets-agent}
REGISTRY=${REGISTRY:-bstagecjotdevacr}
NAMESPACE=${NAMESPACE:-agents}
ROLLOUT_TIMEOUT=${ROLLOUT_TIMEOUT:-180}   # seconds

fail() { echo "deploy: $*" >&2; exit 1; }
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

tag=
while [ $# -gt 0 ]; do
  case $1 in
    --tag) [ $# -ge 2 ] || { usage >&2; exit 2; }; tag=$2; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

for tool in az kubectl; do
  command -v "$tool" >/dev/null || fail "$tool is not on PATH"
done
semver='^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$'
[ -r .image-version ] || fail ".image-version is missing"
current=$(cat .image-version)
[[ $current =~ $semver ]] || fail ".image-version: expected one line X.Y.Z"
if ! [[ $ROLLOUT_TIMEOUT =~ ^[0-9]+$ ]] || [ "$ROLLOUT_TIMEOUT" -lt 180 ]; then
  fail "ROLLOUT_TIMEOUT: expected at least 180 seconds"
fi
if [ -z "$tag" ]; then
  tag=${current%.*}.$((${current##*.} + 1))
fi
[[ $tag =~ $semver ]] || fail "--tag: expected X.Y.Z, got $tag"

# A build that fails leaves no version behind that no image has.
kept=$(mktemp -d)
cp .image-version k8s/deployment.yaml "$kept/"
restore() {
  cp "$kept/.image-version" .image-version
  cp "$kept/deployment.yaml" k8s/deployment.yaml
}
trap 'rm -rf "$kept"' EXIT

echo "$tag" >.image-version
# In place and not at apply time: what runs is what is committed. No sed -i, of
# which there are two kinds.
sed -e "s#\(/$AGENT\):[0-9][0-9.]*\$#\1:$tag#" -e "s#\(service\.version=\)[0-9][0-9.]*#\1$tag#" \
  "$kept/deployment.yaml" >k8s/deployment.yaml
if ! grep -q "/$AGENT:$tag\$" k8s/deployment.yaml || ! grep -q "service\.version=$tag," k8s/deployment.yaml; then
  restore
  fail "k8s/deployment.yaml: expected the image $AGENT and service.version with a version each"
fi

echo "deploy: $AGENT $current -> $tag"
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
if ! az acr build --registry "$REGISTRY" --image "$AGENT:$tag" --image "$AGENT:latest" \
  --build-arg "VERSION=$tag" --build-arg "COMMIT=$commit" .; then
  restore
  fail "the build failed; the version is $current as before"
fi

kubectl apply -f k8s/configmap.yaml
kubectl apply -f k8s/deployment.yaml
if ! kubectl --namespace "$NAMESPACE" rollout status "deployment/$AGENT" --timeout="${ROLLOUT_TIMEOUT}s"; then
  kubectl --namespace "$NAMESPACE" get pods --selector "app=$AGENT" >&2 || true
  fail "the rollout of $tag did not finish within ${ROLLOUT_TIMEOUT}s; go back with: kubectl --namespace $NAMESPACE rollout undo deployment/$AGENT"
fi
echo "deploy: $AGENT $tag is running; commit .image-version and k8s/deployment.yaml with the change"
