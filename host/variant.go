package host

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

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

// changedVariants are those that only one of two drafts has, or that have
// another generation or other users: a share moves the variants behind it.
func (d *draft) changedVariants(from *draft) (names []string) {
	now, was := d.placed(), from.placed()
	for _, v := range slices.Concat(d.variants, from.variants) {
		if name := v.variant.Name; now[name] != was[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// interval is what a variant's users have, and where they stand.
type interval struct {
	generation string
	start, end float64
}

func (d *draft) placed() map[string]interval {
	out, start := map[string]interval{}, 0.0
	for _, v := range d.variants {
		end := start + v.variant.Share
		out[v.variant.Name] = interval{v.id, start, end}
		start = end
	}
	return out
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
