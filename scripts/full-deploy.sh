#!/usr/bin/env bash
# Looks whether a deployment can work, deploys, and asks the agent for its
# health. Arguments are those of deploy.sh.
#
#   scripts/full-deploy.sh [--tag X.Y.Z]
set -euo pipefail
cd "$(dirname "$0")/.."

AGENT=${AGENT:-support-tickets-agent}
REGISTRY=${REGISTRY:-bstagecjotdevacr}
NAMESPACE=${NAMESPACE:-agents}
SMOKE_ATTEMPTS=${SMOKE_ATTEMPTS:-10}
SMOKE_INTERVAL=${SMOKE_INTERVAL:-3}       # seconds

fail() { echo "full-deploy: $*" >&2; exit 1; }

# Everything that is missing at once, before anything is built.
missing=()
for tool in az kubectl; do
  command -v "$tool" >/dev/null || missing+=("$tool on PATH")
done
for file in Dockerfile .image-version k8s/configmap.yaml k8s/deployment.yaml; do
  [ -r "$file" ] || missing+=("$file")
done
if [ ${#missing[@]} -eq 0 ]; then
  az account show >/dev/null 2>&1 || missing+=("a session with Azure (az login)")
  az acr show --name "$REGISTRY" >/dev/null 2>&1 || missing+=("access to the registry $REGISTRY")
  for object in "namespace/$NAMESPACE" serviceaccount/agents-sa secretproviderclass/agents-kv-spc; do
    kubectl --namespace "$NAMESPACE" get "$object" >/dev/null 2>&1 || missing+=("$object in the cluster")
  done
fi
if [ ${#missing[@]} -gt 0 ]; then
  printf 'full-deploy: missing: %s\n' "${missing[@]}" >&2
  exit 1
fi

scripts/deploy.sh "$@"

# Through the API server to the Service, as a client would reach it. Where a
# NetworkPolicy admits the gateway alone this way is closed; then the agent is
# asked from inside its pod.
path="/api/v1/namespaces/$NAMESPACE/services/http:$AGENT:80/proxy/health"
for ((attempt = 1; attempt <= SMOKE_ATTEMPTS; attempt++)); do
  if health=$(kubectl get --raw "$path" 2>/dev/null) && [[ $health =~ \"status\":[[:space:]]*\"healthy\" ]]; then
    echo "full-deploy: $health"
    exit 0
  fi
  [ "$attempt" -eq "$SMOKE_ATTEMPTS" ] || sleep "$SMOKE_INTERVAL"
done
echo "full-deploy: the Service did not answer through the API server; asking inside the pod" >&2
kubectl --namespace "$NAMESPACE" exec "deployment/$AGENT" -- /usr/local/bin/weir probe http http://127.0.0.1:8000/health ||
  fail "the agent is not healthy; its log: kubectl --namespace $NAMESPACE logs deployment/$AGENT"
echo "full-deploy: healthy inside the pod; the way through the Service was not proved"
