package jetstream

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog passes on what the server says and keeps its latest complaints, for
// an error that says why it has not started. Nothing in it ends the process.
type serverLog struct {
	log *slog.Logger

	mu         sync.Mutex
	complaints []string
}

const maxComplaints = 4

// said returns the latest complaints.
func (l *serverLog) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.complaints) == 0 {
		return "it gave no reason"
	}
	return strings.Join(l.complaints, "; ")
}

func (l *serverLog) complain(level func(string, ...any), format string, args []any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	level("nats server: " + text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints = append(l.complaints, text)
	if n := len(l.complaints); n > maxComplaints {
		l.complaints = l.complaints[n-maxComplaints:]
	}
}

// Noticef is what a server says in the ordinary course of things.
func (l *serverLog) Noticef(format string, args ...any) { l.Debugf(format, args...) }

func (l *serverLog) Warnf(format string, args ...any)  { l.complain(l.log.Warn, format, args) }
func (l *serverLog) Errorf(format string, args ...any) { l.complain(l.log.Error, format, args) }
func (l *serverLog) Fatalf(format string, args ...any) { l.complain(l.log.Error, format, args) }

func (l *serverLog) Debugf(format string, args ...any) {
	l.log.Debug("nats server: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Tracef drops: traces hold the messages themselves.
func (l *serverLog) Tracef(string, ...any) {}

func joinStop(err, stop error) error {
	if stop == nil {
		return err
	}
	return errors.Join(err, stop)
}
