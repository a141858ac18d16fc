package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"weir/host/dna"
)

// hashes recomputes those of agentv.md 3.1.
func (v *verifier) hashes(e Evidence) {
	metadata := make(record)
	_ = json.Unmarshal(v.start["metadata"], &metadata) // none is an empty one
	said := map[string]string{}
	for _, name := range []string{"topology_hash", "tool_dna_hash", "provisioning_hash", "fingerprint_v1"} {
		said[name] = metadata.text(name)
	}
	recompute := func(name string, digest func() (string, error), at bool) {
		switch {
		case said[name] == "":
			v.add(name, Failed, "expected it in run_start.metadata")
		case !at:
			v.add(name, Open, "the scenario is not at hand; --scenario names it")
		default:
			want, err := digest()
			if err != nil {
				v.add(name, Failed, err.Error())
				return
			}
			v.equal(name, want, said[name])
		}
	}
	there := e.Workflow != nil
	recompute("topology_hash", func() (string, error) { return dna.Topology(e.Workflow) }, there)
	recompute("tool_dna_hash", func() (string, error) { return dna.Tools(e.Tools) }, there)
	v.environment(said["provisioning_hash"], metadata["environmental_snapshot"], e)
	recompute("fingerprint_v1", func() (string, error) {
		return dna.Fingerprint(said["topology_hash"], said["tool_dna_hash"], said["provisioning_hash"]), nil
	}, true)
}

// environment recomputes provisioning_hash from what is at hand: the registry,
// or a snapshot in which nothing was redacted.
func (v *verifier) environment(said string, snapshot []byte, e Evidence) {
	const name = "provisioning_hash"
	switch {
	case said == "":
		v.add(name, Failed, "expected it in run_start.metadata")
		return
	case e.Registry != nil && more(snapshot, e.Registry) != "":
		v.add(name, Open, fmt.Sprintf("the environment had %s besides the scenario; --routes and the environment of the run decide", more(snapshot, e.Registry)))
		return
	case e.Registry != nil:
		want, err := dna.Provisioning(e.Registry)
		if err != nil {
			v.add(name, Failed, err.Error())
			return
		}
		v.equal(name, want, said)
		v.snapshot(snapshot, e.Registry)
		return
	case snapshot == nil:
		v.add(name, Failed, "expected environmental_snapshot beside it")
		return
	}
	want, err := dna.Provisioning(snapshot)
	switch {
	case err != nil:
		v.add(name, Failed, err.Error())
	case bytes.Contains(snapshot, []byte(dna.Redacted)):
		v.add(name, Open, "secrets are redacted in the snapshot; the scenario, --routes and the environment of the run decide")
	default:
		v.equal(name, want, said)
	}
}

// more names a member that a snapshot has and the registry at hand has not.
func more(snapshot, registry []byte) string {
	var a, b record
	if json.Unmarshal(snapshot, &a) != nil || json.Unmarshal(registry, &b) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[name]; !ok {
			return name
		}
	}
	return ""
}

func (v *verifier) snapshot(said, registry []byte) {
	want, _, err := dna.Snapshot(registry)
	if err == nil {
		want, err = Scrub(nil, want)
	}
	if err != nil {
		v.add("environmental_snapshot", Failed, err.Error())
		return
	}
	a, errA := dna.Digest(want)
	b, errB := dna.Digest(said)
	if errA != nil || errB != nil || a != b {
		v.add("environmental_snapshot", Failed, "expected the redacted form of the registry")
		return
	}
	v.add("environmental_snapshot", OK, "")
}
