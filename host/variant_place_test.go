package host

import (
	"fmt"
	"math"
	"testing"

	"weir/host/auth"
	"weir/host/config"
)

// lined is a base with variants of these shares, v0, v1 and so on.
func lined(shares ...float64) *policy {
	p := &policy{draft: &draft{}}
	for i, share := range shares {
		p.variants = append(p.variants, &policy{draft: &draft{variant: &config.Variant{Name: fmt.Sprint("v", i), Share: share}}})
	}
	p.name()
	return p
}

// W7: shares are what agent.toml says, the same at every replica, and whoever is
// in a variant stays while its share grows.
func TestPlaces(t *testing.T) {
	const users = 20_000
	before, after, again := lined(0.1, 0.25), lined(0.1, 0.4), lined(0.1, 0.25)
	first := lined(0.2, 0.25)
	counts := map[string]int{}
	for i := range users {
		who := auth.Pseudonym(fmt.Sprint("user-", i))
		was := before.choose(who, "").named
		counts[was]++
		if got := again.choose(who, "").named; got != was {
			t.Fatalf("%s is in %s and in %s", who, was, got)
		}
		if got := after.choose(who, "").named; got != was && (was != config.Base || got != "v1") {
			t.Fatalf("%s went from %s to %s when v1 grew", who, was, got)
		}
		if got := first.choose(who, "").named; was == "v0" && got != "v0" {
			t.Fatalf("%s went from v0 to %s when v0 grew", who, got)
		}
	}
	for name, share := range map[string]float64{"v0": 0.1, "v1": 0.25, config.Base: 0.65} {
		// Five standard deviations: a hash that is not even would not hold it.
		within := 5 * math.Sqrt(share*(1-share)*users)
		if off := math.Abs(float64(counts[name]) - share*users); off > within {
			t.Errorf("%s has %d of %d users, expected %.0f within %.0f", name, counts[name], users, share*users, within)
		}
	}
}

// A session's own variant counts before its user's, as long as there is one of
// that name, the base among them.
func TestSessionsKeepTheirVariant(t *testing.T) {
	p := lined(0.5, 0.5)
	who := auth.Pseudonym("somebody")
	for _, name := range []string{"v0", "v1", config.Base} {
		if got := p.choose(who, name).named; got != name {
			t.Errorf("a session of %s got %s", name, got)
		}
	}
	if got, want := p.choose(who, "gone").named, p.choose(who, "").named; got != want {
		t.Errorf("a session of a variant that is gone got %s, its user has %s", got, want)
	}
	if alone := lined(); alone.choose(who, "v0") != alone || alone.named != "" {
		t.Error("without variants there is the base, which has no name")
	}
}

// The hash is for ever: another one would move every user of every experiment
// that runs. The values are of an independent computation (see the comment).
func TestPlaceIsPinned(t *testing.T) {
	// python3: int.from_bytes(hashlib.sha256(b"weir variant 1\0"+p).digest()[:8],"big")>>11)/2**53
	for pseudonym, want := range map[string]float64{
		"":                                     0.025809276419605398,
		"00000000-0000-5000-8000-000000000000": 0.20977674683828507,
		"3f2b8c1e-5a77-5d0e-9c3f-0a1b2c3d4e5f": 0.1963221219779352,
	} {
		if got := place(pseudonym); got != want {
			t.Errorf("%s: %v, want %v", pseudonym, got, want)
		}
	}
}
