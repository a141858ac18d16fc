// Command probe is a guest that tries what the text of its request names and
// answers what it saw. It is the tests' hand inside the sandbox.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkinput"
)

var configured string

func init() {
	pdk.Describe(abi.Description{Name: "probe", Version: "1.0.0"})
	pdk.Configure(func(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
		configured = string(q.Config)
		for _, p := range q.Prompts {
			configured += "|" + p.Name + "=" + p.Text
		}
		if strings.Contains(configured, "refuse") {
			return &abi.ConfigureReply{Error: "it says refuse"}, nil
		}
		return &abi.ConfigureReply{}, nil
	})
	checkinput.Handle(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		saw, err := try(q.Text)
		return &abi.Verdict{Verdict: abi.VerdictAllow, Reason: saw}, err
	})
}

func try(what string) (string, error) {
	if secret, ok := strings.CutPrefix(what, "keep "); ok {
		return keep(secret), nil
	}
	switch what {
	case "config":
		return configured, nil
	case "time":
		return fmt.Sprint(time.Now().UnixMilli()), nil
	case "sleep":
		before := time.Now()
		time.Sleep(time.Hour)
		return fmt.Sprint(time.Since(before)), nil
	case "timeout":
		select {
		case <-time.After(3 * time.Second):
		case <-time.After(2 * time.Second):
			return "the earlier one", nil
		}
		return "the later one", nil
	case "random":
		var b [16]byte
		_, err := rand.Read(b[:])
		return hex.EncodeToString(b[:]), err
	case "world":
		_, err := os.ReadFile("/etc/passwd")
		_, dirErr := os.ReadDir(".")
		return fmt.Sprintf("args %d env %d read %v dir %v", len(os.Args), len(os.Environ()), err != nil, dirErr != nil), nil
	case "collect":
		for range 3 {
			garbage = make([]byte, 1<<20)
			runtime.GC()
		}
		return "collected", nil
	case "goroutines":
		c := make(chan int)
		for i := range 100 {
			go func() { c <- i }()
		}
		sum := 0
		for range 100 {
			sum += <-c
		}
		return fmt.Sprint(sum), nil
	}
	return misbehave(what)
}

// What keep leaves behind: a global, and heap in several forms.
var (
	kept    string
	copies  = map[string][]byte{}
	counter int
	waiting = make(chan string, 64)
)

// keep answers what an earlier call has left, and leaves the secret wherever a
// program can. Every few calls it works the collector.
func keep(secret string) string {
	found := fmt.Sprint(kept, len(copies), counter, len(waiting))
	kept = strings.Clone(secret)
	copies[secret] = []byte(strings.Repeat(secret, 20))
	counter++
	waiting <- secret
	go func() { waiting <- secret + " from another goroutine" }()
	runtime.Gosched()
	switch secret[len(secret)-1] {
	case '3':
		for range 50 {
			garbage = []byte(strings.Repeat(secret, 100))
		}
		runtime.GC()
	case '7':
		for n := range 200 {
			copies[fmt.Sprint(secret, n)] = make([]byte, n)
		}
	}
	return found
}

var garbage []byte

func misbehave(what string) (string, error) {
	switch what {
	case "error":
		return "", errors.New("the handler's own words")
	case "panic":
		panic("a panic's own words")
	case "exit":
		os.Exit(0)
	case "memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
		}
	case "large":
		return strings.Repeat("x", 5<<20), nil
	case "loop":
		for n := 0; ; n++ {
			garbage = nil
		}
	case "print":
		fmt.Println("one line")
		fmt.Println(strings.Repeat("long", 1000))
		fmt.Print("no end")
		pdk.Log(abi.LogWarn, "a warning")
	case "deadlock":
		<-make(chan int)
	}
	return what, nil
}

func main() {}
