package agent_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// behaviour names what the test binary does in place of testing: it is the
// command that the tests drive.
const behaviour = "WEIR_TEST_BEHAVIOUR"

func TestMain(m *testing.M) {
	if b := os.Getenv(behaviour); b != "" {
		os.Exit(behave(b))
	}
	goleak.VerifyTestMain(m)
}

func behave(how string) int {
	fmt.Fprintln(os.Stderr, "log line of", how)
	switch how {
	case "echo": // everything up to the end, in quotes, with its process
		in, _ := io.ReadAll(os.Stdin)
		fmt.Printf("{\"got\":%q}\n", in)
	case "lines": // one answer for each line, with a count that shows the process lives
		in := bufio.NewScanner(os.Stdin)
		for n := 1; in.Scan(); n++ {
			fmt.Printf("{\"n\":%d,\"got\":%q}\n", n, in.Text())
		}
	case "exit":
		fmt.Println(`{"action":"completed"}`)
		return 3
	case "silent":
	case "endless":
		for {
			if _, err := fmt.Println(strings.Repeat("x", 1000)); err != nil {
				return 0
			}
		}
	case "endless-line":
		for {
			if _, err := fmt.Print(strings.Repeat("x", 1000)); err != nil {
				return 0
			}
		}
	case "chatter": // much on stderr, and an answer
		for range 2000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 99))
		}
		fmt.Println(`{}`)
	case "hang":
		time.Sleep(time.Hour)
	case "hang-child": // the child holds the streams and outlives its parent
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), behaviour+"=hang")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println(`{}`)
	}
	return 0
}
