#!/usr/bin/env bash
# A new image version comes with the change that it ships: a commit that changes
# .image-version, and nothing else that goes into an image, is allowed only as
# a redeploy, which its subject says by beginning with "redeploy".
# `make check` asks this of the last commit; in a checkout without history there
# is nothing to ask.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "image-version: $*" >&2; exit 1; }

[[ $(cat .image-version) =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] || fail "expected one line X.Y.Z in .image-version"
git rev-parse --verify --quiet HEAD~1 >/dev/null 2>&1 || exit 0
changed=$(git diff --name-only HEAD~1 HEAD)
grep -qx '\.image-version' <<<"$changed" || exit 0
# The manifest names the version, too, so it says nothing about a change.
if grep -qvxE '\.image-version|k8s/deployment\.yaml' <<<"$changed"; then exit 0; fi
subject=$(git log -1 --format=%s)
[[ $subject == redeploy* ]] || fail "the last commit changes nothing but the version; put it into the change that it ships, or begin the subject with \"redeploy\""
