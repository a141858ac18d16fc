package jetstream_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"weir/host/store"
	"weir/host/store/jetstream"
)

// childDir is set for a process of this test binary that is to append until it
// is killed.
const childDir = "WEIR_TEST_STORE_CHILD"

// A process that appends is killed at random, again and again. Whatever it had
// been acknowledged is there when the directory is opened the next time, once,
// at the position that it was told, and positions are dense.
func TestKilled(t *testing.T) {
	rounds := 20
	if os.Getenv("WEIR_SOAK") != "" {
		rounds = 1000
	} else if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	acknowledged := map[string]string{} // what, by "log id", "key" or "blob"
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for round := range rounds {
		killAfter(t, dir, round, random.IntN(60), acknowledged)
	}
	if len(acknowledged) < rounds {
		t.Fatalf("only %d changes were acknowledged: the test kills too early", len(acknowledged))
	}
	s := open(t, jetstream.Options{Dir: dir, LateLogs: "late."})
	verify(t, s, acknowledged)
	verifyLate(t, s, acknowledged)
}

// killAfter runs a child, notes what it says was acknowledged, and kills it
// after some lines.
func killAfter(t *testing.T, dir string, round, lines int, acknowledged map[string]string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("WEIR_TEST_ROUND=%d", round))
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	n := 0
	for scan.Scan() {
		if n == lines {
			child.Process.Kill()
		}
		n++
		if what, value, ok := strings.Cut(scan.Text(), "="); ok {
			acknowledged[what] = value
		}
	}
	child.Wait()
	if n <= lines {
		t.Fatalf("round %d: the child ended by itself: %s", round, complaints.String())
	}
}

func verify(t *testing.T, s store.Store, acknowledged map[string]string) {
	t.Helper()
	found := map[string]string{}
	for _, log := range []string{"runs.a", "runs.b"} {
		next := int64(1)
		for m, err := range s.Read(t.Context(), log, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Position != next {
				t.Errorf("%s: position %d follows %d", log, m.Position, next-1)
			}
			next++
			what := "append " + log + " " + m.ID
			if found[what] != "" {
				t.Errorf("%s is there twice", what)
			}
			found[what] = fmt.Sprint(m.Position)
		}
	}
	for what, value := range acknowledged {
		kind, name, _ := strings.Cut(what, " ")
		switch kind {
		case "append":
			if strings.HasPrefix(name, "late.") {
				continue
			}
			if found[what] != value {
				t.Errorf("%s was acknowledged at %s and is at %q", what, value, found[what])
			}
		case "put":
			v, err := s.Get(t.Context(), name)
			if acked, _ := strconv.ParseInt(value, 10, 64); err != nil || v.Revision < acked {
				t.Errorf("the value %s is at %d, %v, acknowledged at %s", name, v.Revision, err, value)
			}
		case "blob":
			data, err := s.Blob(t.Context(), "runs.a", name)
			if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != name {
				t.Errorf("the blob %s: %d bytes, %v", name, len(data), err)
			}
		}
	}
	t.Logf("%d changes were acknowledged and are there", len(acknowledged))
}

// verifyLate checks that of a late log a kill takes the latest messages only: of
// each round there are the first ones, in order and each once.
func verifyLate(t *testing.T, s store.Store, acknowledged map[string]string) {
	t.Helper()
	there := map[string]int{} // messages by round
	position := int64(0)
	for m, err := range s.Read(t.Context(), "late.a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if position++; m.Position != position {
			t.Errorf("late.a: position %d, want %d", m.Position, position)
		}
		round, i, _ := strings.Cut(m.ID, "-")
		if i != strconv.Itoa(there[round]) {
			t.Errorf("late.a: %s at %d, where round %s has %d messages", m.ID, m.Position, round, there[round])
		}
		there[round]++
	}
	lost, all := 0, 0
	for what := range acknowledged {
		id, ok := strings.CutPrefix(what, "append late.a ")
		if !ok {
			continue
		}
		all++
		round, i, _ := strings.Cut(id, "-")
		if n, _ := strconv.Atoi(i); n >= there[round] {
			lost++
		}
	}
	t.Logf("of %d messages of a late log %d were lost by kills", all, lost)
	if all == 0 || position == 0 {
		t.Error("no message of the late log was acknowledged or is there: the test kills too early")
	}
}

// child changes everything until it is killed, and says what was acknowledged.
func child(dir string) error {
	ctx := context.Background()
	s, err := jetstream.Open(ctx, jetstream.Options{Dir: dir, LateLogs: "late.", Log: quiet()})
	if err != nil {
		return err
	}
	round := os.Getenv("WEIR_TEST_ROUND")
	failed := make(chan error)
	for _, log := range []string{"runs.a", "runs.b", "late.a"} {
		go func() { failed <- appendForEver(ctx, s, log, round) }()
	}
	go func() { failed <- putForEver(ctx, s, round) }()
	return <-failed
}

func appendForEver(ctx context.Context, s store.Store, log, round string) error {
	position := int64(0)
	for m, err := range s.Read(ctx, log, 0) {
		if err != nil {
			return err
		}
		position = m.Position
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", round, i)
		var err error
		if position, err = s.Append(ctx, log, position, id, [][]byte{[]byte(id), make([]byte, i%3000)}); err != nil {
			return err
		}
		fmt.Printf("append %s %s=%d\n", log, id, position)
	}
}

func putForEver(ctx context.Context, s store.Store, round string) error {
	for i := 0; ; i++ {
		revision, err := s.Put(ctx, "key", []byte(round), store.Any, 0)
		if err != nil {
			return err
		}
		fmt.Printf("put key=%d\n", revision)
		digest, err := s.PutBlob(ctx, "runs.a", fmt.Appendf(nil, "%s-%d", round, i))
		if err != nil {
			return err
		}
		fmt.Printf("blob %s=\n", digest)
	}
}
