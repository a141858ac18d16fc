// Package dna computes the digests with which AgentV ties a run to what was
// run: the workflow, the tools, the environment, and one over all of them.
//
// Every digest is SHA3-256 in 64 lower-case hexadecimal digits over JSON in the
// form of [Canonical]. The contract names topology_hash, tool_dna_hash and
// fingerprint_v1 without saying what they are made of, and no published harness
// computes them; the definitions here are ours and stand at each function.
package dna

import (
	"crypto/sha3"
	"encoding/hex"

	"weir/abi/strictjson"
)

// Sum is the digest of bytes as they are.
func Sum(data []byte) string {
	sum := sha3.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Digest is the digest of one JSON value.
func Digest(value []byte) (string, error) {
	text, err := Canonical(nil, value)
	if err != nil {
		return "", err
	}
	return Sum(text), nil
}

// Topology is topology_hash: the digest of a scenario's `workflow`, as the
// contract says.
func Topology(workflow []byte) (string, error) {
	return Digest(workflow)
}

// Tools is tool_dna_hash of a scenario: the digest of its `tools`. No bytes at
// all stand for a scenario without that member and hash like {}.
func Tools(tools []byte) (string, error) {
	if len(tools) == 0 {
		tools = []byte("{}")
	}
	return Digest(tools)
}

// A Tool is what an agent lets models know about one tool.
type Tool struct {
	Name        string
	Description string
	Parameters  []byte // a JSON Schema; none is {}
}

// Exposed is tool_dna_hash of an agent: the digest of its tools as an object
// from name to {description, parameters}. Their order does not matter; two with
// one name are an error.
func Exposed(tools []Tool) (string, error) {
	b := []byte{'{'}
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, t.Name), `:{"description":`...)
		b = append(strictjson.AppendString(b, t.Description), `,"parameters":`...)
		if len(t.Parameters) == 0 {
			b = append(b, "{}"...)
		}
		b = append(append(b, t.Parameters...), '}')
	}
	return Digest(append(b, '}'))
}

// Provisioning is provisioning_hash: the digest of the registry, everything that
// the environment of a run is made of, with its secrets in it.
func Provisioning(registry []byte) (string, error) {
	return Digest(registry)
}

// Fingerprint is fingerprint_v1: the digest of
// {"provisioning_hash", "tool_dna_hash", "topology_hash", "version": 1}.
func Fingerprint(topology, tools, provisioning string) string {
	b := strictjson.AppendString([]byte(`{"provisioning_hash": `), provisioning)
	b = strictjson.AppendString(append(b, `, "tool_dna_hash": `...), tools)
	b = strictjson.AppendString(append(b, `, "topology_hash": `...), topology)
	return Sum(append(b, `, "version": 1}`...))
}
