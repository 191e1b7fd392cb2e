package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// configFileBytesMax bounds what is read as a configuration file: a wrong path may lead to
// anything.
const configFileBytesMax = 1 << 20

// fileValue is one key of the configuration file.
type fileValue struct {
	texts  []string
	source string // "FILE:LINE: key", the head of an error about the value
}

// readConfigFile reads a TOML file whose keys are setting names. A key that no setting has is
// refused with its line: a mistyped limit that is silently ignored is found out in production.
func readConfigFile(path string, list []setting) (map[string]fileValue, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > configFileBytesMax {
		return nil, fmt.Errorf("--config %s: larger than %d bytes, not a configuration file", path, configFileBytesMax)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	raw := map[string]any{}
	meta, err := toml.Decode(string(text), &raw)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			line := parse.Position.Line
			return nil, fmt.Errorf("%s:%d: %s%s", path, line, parse.Message, quoteHint(string(text), line))
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]fileValue{}
	for _, key := range meta.Keys() {
		name := key.String()
		source := fmt.Sprintf("%s:%d: %s", path, keyLine(string(text), name), name)
		s := findSetting(list, name)
		if s == nil {
			return nil, fmt.Errorf("%s: unknown key%s", source, suggest(name, list, keyName))
		}
		if !s.key {
			return nil, fmt.Errorf("%s: %s", source, elsewhere(s))
		}
		texts, err := configTexts(raw[name], s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		out[name] = fileValue{texts, source}
	}
	return out, nil
}

// configTexts turns a decoded TOML value into the texts that a flag would have given.
func configTexts(v any, s *setting) ([]string, error) {
	switch v := v.(type) {
	case string:
		return splitList(*s, v), nil
	case bool, int64:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		if !s.list || len(v) == 0 {
			break
		}
		var out []string
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("want %s in quotes", wanted(s.field))
			}
			out = append(out, text)
		}
		return out, nil
	}
	return nil, fmt.Errorf("want %s", wanted(s.field))
}

// bareText matches a line whose value lacks its quotes.
var bareText = regexp.MustCompile(`^\s*([\w-]+)\s*=\s*([^\s"'\[{#]+)\s*(?:#.*)?$`)

// quoteHint says that text belongs in quotes when the line looks as if that was the mistake.
func quoteHint(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	m := bareText.FindStringSubmatch(strings.TrimSuffix(lines[line-1], "\r"))
	if m == nil || m[2] == "true" || m[2] == "false" {
		return ""
	}
	if _, err := strconv.ParseFloat(m[2], 64); err == nil {
		return "" // a value of its own; the mistake is another
	}
	return fmt.Sprintf("; text belongs in quotes: %s = %q", m[1], m[2])
}

// keyLine finds the line on which a key is given; 1 when it cannot be told.
func keyLine(text, key string) int {
	last := key[strings.LastIndexByte(key, '.')+1:]
	pattern := regexp.MustCompile(`^\s*\[?\s*["']?(?:[\w.-]+\.)?` + regexp.QuoteMeta(last) + `["']?\s*[=\]]`)
	for i, line := range strings.Split(text, "\n") {
		if pattern.MatchString(line) {
			return i + 1
		}
	}
	return 1
}
