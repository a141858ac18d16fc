package config

import (
	"regexp"
	"strings"
)

// LoadAdmin reads what it takes to ask a running host: [admin] and
// WEIR_ADMIN_KEY. Whatever else the configuration has wrong is no reason to
// refuse, because that is when a host is asked how it is, and told to go back.
// Where the file as a whole is no TOML its [admin] table alone is read.
func LoadAdmin(src Source) (Admin, error) {
	env := environment{look: src.Env}
	c := defaults()
	c.Path = src.path()
	data, err := readFile(c.Path)
	if err != nil {
		return Admin{}, refuse([]error{err})
	}
	var all, own ledger
	if !c.decode(data, &all) && !c.decode(adminTable(data), &own) {
		return Admin{}, refuse(all.errs)
	}
	c.applyEnvironment(env, &all)
	for _, err := range all.errs {
		if strings.Contains(err.Error(), "[admin] listen") || strings.Contains(err.Error(), "WEIR_ADMIN_KEY") {
			own.errs = append(own.errs, err)
		}
	}
	c.resolve()
	checker{c: c, l: &own}.admin()
	if len(own.errs) > 0 {
		return Admin{}, refuse(own.errs)
	}
	return c.Admin, nil
}

var (
	tableHead = regexp.MustCompile(`(?m)^[ \t]*\[`)
	adminHead = regexp.MustCompile(`(?m)^[ \t]*\[admin\]`)
)

// adminTable returns the text of the [admin] table, as it is written in general.
func adminTable(data []byte) []byte {
	head := adminHead.FindIndex(data)
	if head == nil {
		return nil
	}
	table := data[head[0]:]
	if next := tableHead.FindIndex(table[head[1]-head[0]:]); next != nil {
		table = table[:head[1]-head[0]+next[0]]
	}
	return table
}
