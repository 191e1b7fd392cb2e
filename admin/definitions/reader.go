package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// node is a value of the file with its place in it.
type node struct {
	path  string
	value any // as encoding/json with UseNumber; nil when it is not there
	r     *reader
}

// reader keeps the first mistake that the nodes find.
type reader struct{ err error }

// fail notes a mistake at the place of the node.
func (n node) fail(format string, args ...any) {
	if n.r.err == nil {
		n.r.err = placed(n.path, fmt.Errorf(format, args...))
	}
}

// placed is an error with the place of it in the file.
func placed(path string, err error) error {
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// readJSON reads a file of one JSON object.
func readJSON(data []byte) (map[string]any, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, jsonError(data, d.InputOffset(), err)
	}
	end := d.InputOffset()
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, jsonError(data, end, errors.New("something follows the JSON object"))
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a JSON object is expected, not %s", kindOf(v))
	}
	return object, nil
}

// jsonError names line and column of what is no JSON.
func jsonError(data []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if len(bytes.TrimSpace(data)) == 0 {
			return errors.New("not JSON: the file is empty")
		}
		offset, err = int64(len(data)), errors.New("the file ends in the middle")
	}
	before := data[:min(offset, int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("not JSON: line %d, column %d: %w", line, max(column, 1), err)
}

// kindOf is the word for what a value is.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return fmt.Sprintf("the text %q", v)
	case json.Number:
		return "the number " + v.String()
	case []any:
		return "an array"
	}
	return "an object"
}

// at is a key of an object. null is as good as an absent key.
func (n node) at(key string) node {
	path := key
	if n.path != "" {
		path = n.path + "." + key
	}
	object, _ := n.value.(map[string]any)
	return node{path, object[key], n.r}
}

// items are the elements of an array, none of an absent one.
func (n node) items() []node {
	if n.value == nil {
		return nil
	}
	list, ok := n.value.([]any)
	if !ok {
		n.fail("an array is expected, not %s", kindOf(n.value))
		return nil
	}
	out := make([]node, len(list))
	for i, v := range list {
		out[i] = node{fmt.Sprintf("%s[%d]", n.path, i), v, n.r}
		out[i].object()
	}
	return out
}

// object is the value as an object, nil of an absent one. An empty array counts as an empty
// object: there are brokers that write it so.
func (n node) object() map[string]any {
	switch v := n.value.(type) {
	case nil:
		return nil
	case map[string]any:
		return v
	case []any:
		if len(v) == 0 {
			return nil
		}
	}
	n.fail("an object is expected, not %s", kindOf(n.value))
	return nil
}

// text is the value as a text, empty when it is absent.
func (n node) text() string {
	if n.value == nil {
		return ""
	}
	s, ok := n.value.(string)
	if !ok {
		n.fail("a text is expected, not %s", kindOf(n.value))
	}
	return s
}

// need is a text that has to be there.
func (n node) need() string {
	if n.value == nil {
		n.fail("it is missing")
	}
	return n.text()
}

// filled is need for what must not be empty.
func (n node) filled() string {
	s := n.need()
	if s == "" {
		n.fail("it is empty")
	}
	return s
}

// name is need for names of what clients use.
func (n node) name() string {
	s := n.need()
	if len(s) > nameMax {
		n.fail("a name has at most %d bytes, this one has %d", nameMax, len(s))
	}
	return s
}

// nameMax is the longest name in bytes that a client can use.
const nameMax = 255

// flag is the value as a boolean, otherwise when it is absent.
func (n node) flag(otherwise bool) bool {
	switch v := n.value.(type) {
	case nil:
		return otherwise
	case bool:
		return v
	}
	n.fail("true or false is expected, not %s", kindOf(n.value))
	return otherwise
}

// number is the value as a whole number, 0 when it is absent.
func (n node) number() int {
	if n.value == nil {
		return 0
	}
	if v, ok := n.value.(json.Number); ok {
		if i, err := v.Int64(); err == nil && int64(int32(i)) == i {
			return int(i)
		}
	}
	n.fail("a whole number is expected, not %s", kindOf(n.value))
	return 0
}

// tags are a list of texts, or one text with commas.
func (n node) tags() []string {
	switch v := n.value.(type) {
	case nil:
		return nil
	case string:
		var out []string
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
		return out
	case []any:
		var out []string
		for i, item := range v {
			out = append(out, node{fmt.Sprintf("%s[%d]", n.path, i), item, n.r}.need())
		}
		return out
	}
	n.fail("a list of texts is expected, not %s", kindOf(n.value))
	return nil
}

// raw is the value as JSON, nil when it is absent.
func (n node) raw() json.RawMessage {
	if n.value == nil {
		return nil
	}
	raw, err := json.Marshal(n.value)
	if err != nil {
		n.fail("%w", err)
	}
	return raw
}
