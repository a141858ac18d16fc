//go:build unix

package jetstream_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"weir/host/store"
	"weir/host/store/jetstream"
)

func benchOpen(b *testing.B, opts jetstream.Options) *jetstream.Store {
	b.Helper()
	opts.Dir, opts.Log = b.TempDir(), quiet()
	s, err := jetstream.Open(b.Context(), opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// An append of 1 KiB to one log after the other, and by several at once.
func BenchmarkAppend(b *testing.B) {
	for name, opts := range map[string]jetstream.Options{"always": {}, "every minute": {SyncEvery: time.Minute}} {
		record := [][]byte{make([]byte, 1<<10)}
		b.Run("sync "+name, func(b *testing.B) {
			s := benchOpen(b, opts)
			position := int64(0)
			for b.Loop() {
				var err error
				if position, err = s.Append(b.Context(), "runs.a", position, "i", record); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("sync "+name+"/16 at once", func(b *testing.B) {
			s := benchOpen(b, opts)
			b.SetParallelism(8)
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					if _, err := s.Append(b.Context(), fmt.Sprintf("runs.%p-%d", p, i), 0, "i", record); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s := benchOpen(b, jetstream.Options{SyncEvery: time.Minute})
	for i := range int64(50) {
		if _, err := s.Append(b.Context(), "runs.a", i, "i", [][]byte{make([]byte, 1<<10)}); err != nil {
			b.Fatal(err)
		}
	}
	for from, name := range map[int64]string{0: "50 messages", 49: "the last"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, err := range s.Read(b.Context(), "runs.a", from) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	s := benchOpen(b, jetstream.Options{})
	for b.Loop() {
		if _, err := s.Put(b.Context(), "k", []byte("v"), store.Any, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}

// A run's payloads: ten blobs of 4 KiB, put and dropped.
func BenchmarkBlobs(b *testing.B) {
	s := benchOpen(b, jetstream.Options{})
	for b.Loop() {
		for i := range 10 {
			data := make([]byte, 4<<10)
			data[0] = byte(i)
			if _, err := s.PutBlob(b.Context(), "runs.a", data); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.DropSpace(b.Context(), "runs.a"); err != nil {
			b.Fatal(err)
		}
	}
}

// What a server inside the process and a watch cost while nothing happens.
func BenchmarkIdle(b *testing.B) {
	const watches = 5000
	for b.Loop() {
		mem0, go0 := memory(), runtime.NumGoroutine()
		s := benchOpen(b, jetstream.Options{})
		mem1, go1 := memory(), runtime.NumGoroutine()
		b.ReportMetric(float64(mem1-mem0)/(1<<20), "MiB/server")
		b.ReportMetric(float64(go1-go0), "goroutines/server")
		cpu := cpuTime(b)
		time.Sleep(3 * time.Second)
		b.ReportMetric(float64(cpuTime(b)-cpu)/float64(3*time.Second)*100, "%CPU/server")
		for i := range watches {
			go func() {
				for range s.Watch(b.Context(), fmt.Sprintf("runs.%d", i), 0) {
				}
			}()
		}
		time.Sleep(2 * time.Second)
		b.ReportMetric(float64(memory()-mem1)/watches/(1<<10), "KiB/watch")
	}
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
