package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// grace is how long the child may take to end after SIGTERM.
const grace = 10 * time.Second

// keptLog bounds what is remembered of the child's output.
const keptLog = 64 << 10

// longLine is where a line is broken that does not end.
const longLine = 8 << 10

// child is a process that never outlives this one: it has a process group of
// its own, which is ended as a whole, and where the system can do it the kernel
// ends it even if we are killed.
type child struct {
	cmd   *exec.Cmd
	log   *tail
	ended chan struct{} // closed once the process has ended; err is set before
	err   error
	once  sync.Once
}

// startChild starts a program. Its output goes to live, line by line with a
// prefix; nil keeps it for dump only.
func startChild(path string, args, env []string, live io.Writer) (*child, error) {
	c := &child{cmd: exec.Command(path, args...), log: &tail{live: live}, ended: make(chan struct{})}
	c.cmd.Env = env
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.SysProcAttr = attributes()
	c.cmd.WaitDelay = grace // a grandchild may hold the pipes
	started := make(chan error)
	go func() {
		// The kernel watches the thread that started the child, so that thread
		// has to live as long as the child does.
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			close(c.ended)
		}
	}()
	return c, <-started
}

// stop ends the child and everything that it started, first politely.
func (c *child) stop() {
	c.once.Do(func() {
		end(c.cmd.Process, true)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.ended:
		case <-timer.C:
		}
		end(c.cmd.Process, false) // also what it left behind in its group
		<-c.ended
	})
}

// dump writes what is remembered of the child's output.
func (c *child) dump(w io.Writer) { c.log.dump(w) }

// tail keeps the last lines of an output and can pass them on at once.
type tail struct {
	mu   sync.Mutex
	live io.Writer
	kept []byte
	line []byte
}

// Write implements io.Writer and never fails: the child's log is not worth its
// life.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - keptLog; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	if t.live != nil {
		t.line = append(t.line, p...)
		t.pass()
	}
	return len(p), nil
}

func (t *tail) pass() {
	for {
		i := bytes.IndexByte(t.line, '\n')
		if i < 0 && len(t.line) < longLine {
			return
		}
		if i < 0 {
			i = len(t.line) - 1
		}
		fmt.Fprintf(t.live, "agent | %s\n", bytes.TrimRight(t.line[:i+1], "\n"))
		t.line = t.line[i+1:]
	}
}

func (t *tail) dump(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		return // it has been seen
	}
	for line := range bytes.Lines(t.kept) {
		fmt.Fprintf(w, "agent | %s\n", bytes.TrimRight(line, "\n"))
	}
}
