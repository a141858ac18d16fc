// Package watch tells when one of a few files has changed, however it was
// changed: written in place, replaced by a rename as editors do, or reached
// through a symbolic link that points elsewhere by now, as Kubernetes swaps the
// files of a ConfigMap and deployments their "current" folder.
//
//	event in a folder on the way ─ settle ─ compare ─► changed
//
// Folders are watched and not files, because what is replaced takes its watch
// along. Which of the events mean something is decided by looking at the files.
package watch

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options are a watcher's settings.
type Options struct {
	// Settle is how long the folders must be quiet before the files are
	// compared. Default 500 ms. Events that never stop delay a comparison to
	// ten times of it, no longer.
	Settle time.Duration
	// Logger gets what cannot be watched. Nil drops it.
	Logger *slog.Logger
}

const patience = 10 // times Settle

// Watcher watches files until it is closed.
type Watcher struct {
	opts    Options
	changed func()
	notify  *fsnotify.Watcher
	orders  chan order
	done    chan struct{}
	once    sync.Once
	ended   chan struct{}

	// Of the goroutine.
	files   map[string]look
	folders map[string]bool // watched
}

// order is a new list of files, with what they were when it was given.
type order struct {
	files map[string]look
	taken chan struct{}
}

// New returns a watcher of no files. It calls changed, from one goroutine, after
// a change; until changed returns nothing is compared.
func New(changed func(), opts Options) (*Watcher, error) {
	if opts.Settle <= 0 {
		opts.Settle = 500 * time.Millisecond
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watcher{opts: opts, changed: changed, notify: notify, orders: make(chan order),
		done: make(chan struct{}), ended: make(chan struct{}), files: map[string]look{}, folders: map[string]bool{}}
	go w.run()
	return w, nil
}

// Files replaces the files that are watched. Those that were watched before are
// compared with what they were; new ones count as they are. One that does not
// exist changes when it appears. Every change after Files was called is
// noticed. It must not be called by changed.
func (w *Watcher) Files(paths []string) {
	o := order{files: make(map[string]look, len(paths)), taken: make(chan struct{})}
	for _, p := range paths {
		if p, err := filepath.Abs(p); err == nil {
			o.files[p] = lookAt(p)
		}
	}
	select {
	case w.orders <- o:
		<-o.taken
	case <-w.done:
	}
}

// Close ends the watching and waits for it. It may be called twice.
func (w *Watcher) Close() error {
	var err error
	w.once.Do(func() {
		close(w.done)
		<-w.ended
		err = w.notify.Close()
	})
	return err
}

func (w *Watcher) run() {
	defer close(w.ended)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var first time.Time // of the events that are settling
	event := func() {
		if first.IsZero() {
			first = time.Now()
		}
		timer.Reset(max(0, min(w.opts.Settle, time.Until(first.Add(patience*w.opts.Settle)))))
	}
	for {
		select {
		case <-w.done:
			return
		case o := <-w.orders:
			w.take(o)
			close(o.taken)
			event() // what happened before the folders were watched made none
		case e := <-w.notify.Events:
			if e.Op != fsnotify.Chmod {
				event()
			}
		case err := <-w.notify.Errors: // events were lost
			w.opts.Logger.Warn("watching files", "error", err)
			event()
		case <-timer.C:
			first = time.Time{}
			if w.compare() {
				w.changed()
			}
		}
	}
}

// take makes the files of an order the watched ones.
func (w *Watcher) take(o order) {
	for path := range o.files {
		if before, ok := w.files[path]; ok {
			o.files[path] = before
		}
	}
	w.files = o.files
	w.follow()
}

// compare looks at all files and tells whether one is not what it was.
func (w *Watcher) compare() (changed bool) {
	// First the folders: what happens after the look then is an event.
	w.follow()
	for path, before := range w.files {
		now := lookAt(path)
		changed = changed || !now.same(before)
		w.files[path] = now
	}
	return changed
}

// follow watches every folder on the way to the files, and no other.
func (w *Watcher) follow() {
	wanted := map[string]bool{}
	for path := range w.files {
		for _, folder := range way(path) {
			wanted[folder] = true
		}
	}
	for folder := range w.folders {
		if !wanted[folder] {
			_ = w.notify.Remove(folder) // it may be gone, and its watch with it
			delete(w.folders, folder)
		}
	}
	for folder := range wanted {
		// Again also where it was added: it may be another folder by now.
		if err := w.notify.Add(folder); err != nil {
			if !w.folders[folder] {
				w.opts.Logger.Warn("watching files: a folder cannot be watched", "folder", folder, "error", err)
			}
			continue
		}
		w.folders[folder] = true
	}
}

// look is what a file was when it was looked at.
type look struct {
	info os.FileInfo // nil: there was none
}

func lookAt(path string) look {
	info, err := os.Stat(path)
	if err != nil {
		return look{}
	}
	return look{info}
}

func (l look) same(other look) bool {
	if l.info == nil || other.info == nil {
		return l.info == nil && other.info == nil
	}
	return os.SameFile(l.info, other.info) && l.info.Size() == other.info.Size() &&
		l.info.ModTime().Equal(other.info.ModTime())
}
