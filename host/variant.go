package host

import (
	"crypto/sha256"
	"encoding/binary"

	"weir/host/config"
)

// spread begins what is hashed to place a user, so that no other use of the same
// digest, such as a sample of logs, falls together with a variant.
const spread = "weir variant 1\x00"

// place is where a pseudonym stands between 0 and 1, the same at every replica
// and for ever.
func place(pseudonym string) float64 {
	sum := sha256.Sum256([]byte(spread + pseudonym))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// choose returns the policy of a run: the variant of that name, or the one in
// whose interval the user stands. The intervals lie one behind the other from 0
// on, in the order of agent.toml:
//
//	0 ── first ──┬── second ──┬────────── base ────────── 1
//
// so whoever is in a variant stays while its share grows.
func (p *policy) choose(pseudonym, name string) *policy {
	if p.named == "" {
		return p
	}
	for _, one := range p.all() {
		if one.named == name {
			return one
		}
	}
	at, end := place(pseudonym), 0.0
	for _, v := range p.variants {
		if end += v.variant.Share; at < end {
			return v
		}
	}
	return p
}

// name gives the runs of the base and of its variants their names, where there
// are variants.
func (p *policy) name() {
	if len(p.variants) == 0 {
		return
	}
	p.named = config.Base
	for _, v := range p.variants {
		v.named = v.variant.Name
	}
}
