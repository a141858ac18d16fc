package main

import (
	"errors"
	"strconv"

	"weir/abi"
	"weir/abi/strictjson"
)

// The state is, for every finder, the offset in the stream behind the last
// match that began before hold_from, as an array of integers. It is absent when
// none of them lies behind hold_from.

// readState returns where each of n finders goes on, nil without a state.
func readState(state abi.Raw, n int) ([]int64, error) {
	if len(state) == 0 {
		return nil, nil
	}
	resume := make([]int64, n)
	d := strictjson.NewDecoder(state)
	i := 0
	err := d.Array(func() (err error) {
		if i == n {
			return errors.New("expected " + strconv.Itoa(n) + " offsets")
		}
		resume[i], err = d.Int()
		i++
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err == nil && i < n {
		err = errors.New("expected " + strconv.Itoa(n) + " offsets")
	}
	return resume, at("state", err)
}

// appendState appends the state that goes with hold. Matches and hold are
// offsets into a text that begins at pos in the stream.
func appendState(b []byte, all []found, n int, resume []int64, hold int, pos int64) []byte {
	var next []int64 // nil as long as no finder has such a match
	set := func(finder int, at int64) {
		if at <= pos+int64(hold) {
			return
		}
		if next == nil {
			next = make([]int64, n)
		}
		next[finder] = at
	}
	for i, r := range resume {
		set(i, r)
	}
	for _, f := range all {
		if f.from < hold {
			set(f.finder, pos+int64(f.to))
		}
	}
	if next == nil {
		return nil
	}
	for i, v := range next {
		b = strictjson.AppendInt(append(b, "[,"[min(i, 1)]), v)
	}
	return append(b, ']')
}
