package run

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Index is what a keeper shares with those of other replicas beside the logs.
type Index interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
	Delete(ctx context.Context, key string) error
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Changes yields the zero Change when it listens, and from then on the logs
	// with the prefix that are appended to, with their positions. It may leave out all but the last of a log.
	Changes(ctx context.Context, prefix string) iter.Seq2[Change, error]
}

// Change says that a log has reached a position.
type Change struct {
	Log      string
	Position int64
}

// openRun is what the index says of a run that is not ended.
type openRun struct {
	Generation string `json:"generation"`
	Expires    int64  `json:"expires"` // of its question, milliseconds
}

// Prefixes of the index's keys. The values are JSON objects with a member
// generation.
const (
	OpenPrefix    = "open."    // <replica>.<run>
	ReplicaPrefix = "replica." // <replica>
)

func (k *Keeper) key(run string) string { return OpenPrefix + k.opts.Replica + "." + run }

// announce puts a run into the index, where others find it should we die. It
// stands there before the log has the question.
func (k *Keeper) announce(ctx context.Context, run, generation string, expires time.Time) error {
	if k == nil {
		return nil
	}
	body, err := json.Marshal(openRun{Generation: generation, Expires: expires.UnixMilli()})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.indexed[run] = true
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
	defer cancel()
	return k.index.Put(ctx, k.key(run), body, 0)
}

// forget takes an ended run out of the index, where those that never waited do
// not stand.
func (k *Keeper) forget(run string) {
	k.mu.Lock()
	indexed := k.indexed[run]
	delete(k.indexed, run)
	k.mu.Unlock()
	if !indexed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.life), logTimeout)
	defer cancel()
	if err := k.index.Delete(ctx, k.key(run)); err != nil {
		k.opts.Logger.Warn("an ended run is still in the index", "run", run, "error", err)
	}
}
