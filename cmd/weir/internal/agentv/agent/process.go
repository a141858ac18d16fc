package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"weir/host/fault"
)

// waitDelay is how long a process that was told to end may keep its streams.
const waitDelay = 2 * time.Second

// processes starts a process for each request (agentv.md 1.6): the request on
// stdin and its end, the whole of stdout is the answer, exit code 0.
type processes struct {
	command []string
	opts    Options
}

// Ask implements Session.
func (s *processes) Ask(ctx context.Context, request []byte, _ string) (Answer, error) {
	ctx, cancel := bounded(ctx, s.opts)
	defer cancel()
	if s.opts.Newline {
		request = append(bytes.Clone(request), '\n')
	}
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	group(cmd)
	stdout := &limited{limit: s.opts.MaxReply, full: cancel}
	stderr := &keeper{limit: s.opts.MaxStderr}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), stdout, stderr
	cmd.WaitDelay = waitDelay
	err := cmd.Run()
	// What it started and left behind must not live on.
	kill(cmd)
	answer := Answer{Stderr: stderr.take()}
	switch {
	case stdout.over:
		return answer, tooLarge(s.opts)
	case ctx.Err() != nil:
		return answer, ended(ctx, s.opts, nil)
	case err != nil:
		return answer, failure(err, answer.Stderr)
	case len(bytes.TrimSpace(stdout.buf.Bytes())) == 0:
		return answer, noAnswer("the command wrote none%s", said(answer.Stderr))
	}
	answer.Body = stdout.buf.Bytes()
	return answer, nil
}

// Close implements Session.
func (s *processes) Close() error { return nil }

func failure(err error, stderr string) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return noAnswer("the command ended with %s%s", exit, said(stderr))
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return noAnswer("the command ended and left its output open")
	}
	return fault.Coded(fault.Unavailable, CodeConnect, "agent: expected a command that starts: %w", err)
}

// said quotes the last line of what a command complained about.
func said(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	if stderr == "" {
		return ""
	}
	line := stderr[strings.LastIndexByte(stderr, '\n')+1:]
	return fmt.Sprintf(" (stderr: %.200q)", line)
}

// process keeps one process for a session and exchanges lines with it.
type process struct {
	command []string
	opts    Options

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *keeper
	broken error // why there is no more to ask
}

// Ask implements Session.
func (p *process) Ask(ctx context.Context, request []byte, _ string) (Answer, error) {
	if p.broken == nil && p.cmd == nil {
		p.broken = p.start()
	}
	if p.broken != nil {
		return Answer{}, p.broken
	}
	ctx, cancel := bounded(ctx, p.opts)
	defer cancel()
	cmd := p.cmd
	stop := context.AfterFunc(ctx, func() { kill(cmd) })
	line, err := p.exchange(request)
	stop()
	if err != nil {
		p.broken = ended(ctx, p.opts, err)
		_ = p.Close()
		return Answer{Stderr: p.stderr.take()}, p.broken
	}
	return Answer{Body: line, Stderr: p.stderr.take()}, nil
}

func (p *process) start() error {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	group(cmd)
	p.stderr = &keeper{limit: p.opts.MaxStderr}
	cmd.Stderr, cmd.WaitDelay = p.stderr, waitDelay
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fault.New(fault.Internal, "agent: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fault.New(fault.Internal, "agent: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return failure(err, "")
	}
	p.cmd, p.stdin, p.stdout = cmd, stdin, bufio.NewReader(stdout)
	return nil
}

func (p *process) exchange(request []byte) ([]byte, error) {
	// A process that reads only after it has written would block both sides
	// otherwise.
	sent := make(chan error, 1)
	go func() {
		_, err := p.stdin.Write(append(bytes.Clone(request), '\n'))
		sent <- err
	}()
	line, err := readLine(p.stdout, p.opts.MaxReply)
	if err != nil {
		kill(p.cmd) // so that the write ends as well
	}
	errWrite := <-sent
	switch {
	case err == nil && len(bytes.TrimSpace(line)) == 0:
		return nil, noAnswer("got an empty line")
	case err == nil:
		return line, nil
	case errors.Is(err, errLong):
		return nil, tooLarge(p.opts)
	case errors.Is(err, io.EOF):
		return nil, noAnswer("the command ended")
	case errWrite != nil:
		return nil, noAnswer("the request could not be sent: %w", errWrite)
	}
	return nil, noAnswer("the command's output failed: %w", err)
}

// Close implements Session: it ends the process by the end of its input, and by
// force if that is not enough.
func (p *process) Close() error {
	if p.cmd == nil {
		return nil
	}
	cmd := p.cmd
	p.cmd = nil
	_ = p.stdin.Close()
	force := time.AfterFunc(waitDelay, func() { kill(cmd) })
	// What it still writes is read, or it could not end.
	_, _ = io.Copy(io.Discard, p.stdout)
	err := cmd.Wait()
	force.Stop()
	kill(cmd)
	if p.broken == nil {
		p.broken = fault.New(fault.Gone, "agent: the session is closed")
		if _, ok := errors.AsType[*exec.ExitError](err); ok {
			return noAnswer("a clean end: the command ended with %w", err)
		}
	}
	return nil
}

// limited keeps an output up to its limit and then ends the command.
type limited struct {
	limit int
	full  func()
	buf   bytes.Buffer
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.buf.Len()+len(p) > l.limit {
		l.over = true
		l.full()
		return 0, errLong
	}
	return l.buf.Write(p)
}

// keeper keeps the beginning of an output and counts the rest.
type keeper struct {
	limit int

	mu      sync.Mutex
	buf     bytes.Buffer
	dropped int
}

func (k *keeper) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := min(max(k.limit-k.buf.Len(), 0), len(p))
	k.buf.Write(p[:room])
	k.dropped += len(p) - room
	return len(p), nil
}

// take returns what came since it was called last.
func (k *keeper) take() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := strings.ToValidUTF8(k.buf.String(), "\uFFFD")
	if k.dropped > 0 {
		text += fmt.Sprintf("\n[%d more bytes dropped]", k.dropped)
	}
	k.buf.Reset()
	k.dropped = 0
	return text
}
