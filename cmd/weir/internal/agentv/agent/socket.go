package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"weir/host/fault"
)

// socketSession sends lines of JSON over TCP or a Unix socket (agentv.md 1.7).
type socketSession struct {
	address Address
	opts    Options
	conn    net.Conn // with Persistent, once it is there
	reader  *bufio.Reader
}

// Ask implements Session.
func (s *socketSession) Ask(ctx context.Context, request []byte, _ string) (Answer, error) {
	ctx, cancel := bounded(ctx, s.opts)
	defer cancel()
	if s.conn == nil {
		dialer := net.Dialer{Timeout: s.opts.Connect}
		conn, err := dialer.DialContext(ctx, s.address.Network, s.address.Target)
		if err != nil {
			return Answer{}, ended(ctx, s.opts, fault.Coded(fault.Unavailable, CodeConnect, "agent: expected a connection: %w", err))
		}
		s.conn, s.reader = conn, bufio.NewReaderSize(conn, 4096)
	}
	conn := s.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	body, err := s.exchange(request)
	stop()
	if err != nil || !s.opts.Persistent {
		_ = s.Close()
	}
	if err != nil {
		return Answer{}, ended(ctx, s.opts, err)
	}
	return Answer{Body: body}, nil
}

func (s *socketSession) exchange(request []byte) ([]byte, error) {
	// An agent may answer before it has read everything, so a failed write counts
	// only if there is no answer either.
	_, errWrite := s.conn.Write(append(bytes.Clone(request), '\n'))
	line, err := readLine(s.reader, s.opts.MaxReply)
	switch {
	case err == nil && len(bytes.TrimSpace(line)) == 0:
		return nil, noAnswer("got an empty line")
	case err == nil:
		return line, nil
	case errors.Is(err, errLong):
		return nil, tooLarge(s.opts)
	case errWrite != nil:
		return nil, noAnswer("the request could not be sent: %w", errWrite)
	case errors.Is(err, io.EOF):
		return nil, noAnswer("the connection was closed without one")
	}
	return nil, noAnswer("the connection failed: %w", err)
}

// Close implements Session.
func (s *socketSession) Close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn, s.reader = nil, nil
	return err
}

var errLong = errors.New("line too long")

// readLine reads up to a line's end or the end of the stream; nothing at all
// before that is io.EOF. The line's end counts for the limit.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, errLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(line, []byte("\n")), nil
	}
}
