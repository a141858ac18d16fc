package watch

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds symbolic links that point at each other.
const maxLinks = 40

// way returns the folders in which a change can make path, which is absolute,
// lead to another file: the one that holds the file, and the one that holds
// each symbolic link on the way. Where the way ends early it is the folder in
// which it would go on.
//
//	/etc/weir/agent.toml ─► ..data/agent.toml      /etc/weir
//	/etc/weir/..data     ─► ..2026_01_01           /etc/weir
//	/etc/weir/..2026_01_01/agent.toml              /etc/weir/..2026_01_01
func way(path string) []string {
	var folders []string
	volume := filepath.VolumeName(path)
	at, rest := volume+string(filepath.Separator), split(path[len(volume):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return append(folders, at)
		case info.Mode()&os.ModeSymlink != 0:
			folders = append(folders, at)
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return folders
			}
			if filepath.IsAbs(target) {
				at = filepath.VolumeName(target) + string(filepath.Separator)
				target = target[len(filepath.VolumeName(target)):]
			}
			rest = append(split(target), rest...)
		case len(rest) == 0:
			return append(folders, at)
		default:
			at = next
		}
	}
	return folders
}

// split returns the elements of a path; ".." is left to filepath.Join.
func split(path string) []string {
	return strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
}
