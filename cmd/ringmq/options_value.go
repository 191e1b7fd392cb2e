package main

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// address is a HOST:PORT to listen on; the host may be empty (all addresses).
type address string

// optionalAddr is an address or "off".
type optionalAddr string

// byteSize is a count of bytes; its text may end in one of sizeUnits.
type byteSize int64

// coreList is a set of processor numbers in ascending order; nil means auto.
type coreList []int

// coreMax bounds processor numbers: the size of the kernel's affinity mask in x/sys.
const coreMax = 1024

var errShape = errors.New("") // the value is not of the setting's shape; its want tag says it all

// parseSetting reads text into the field, which is of one of the types used in serveOptions.
// Its error says what is wanted, without naming the setting.
func parseSetting(f reflect.StructField, v reflect.Value, text string) error {
	if unit := f.Tag.Get("whole"); unit != "" {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			text += unit // heartbeat = 60, as RabbitMQ's file has it
		}
	}
	err := parseText(v, text)
	if err == nil {
		err = checkBounds(f, v)
	}
	if err == nil {
		err = checkEnum(f, text)
	}
	if errors.Is(err, errShape) {
		return fmt.Errorf("want %s", wanted(f))
	}
	return err
}

func parseText(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errShape
		}
		*p = b
	case *int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errShape
		}
		*p = int(n)
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errShape
		}
		*p = d
	case *byteSize:
		n, err := parseByteSize(text)
		if err != nil {
			return err
		}
		*p = n
	case *memoryLimit:
		n, err := parseMemoryLimit(text)
		if err != nil {
			return err
		}
		*p = n
	case *address:
		*p = address(text)
		return checkAddress(text)
	case *optionalAddr:
		*p = optionalAddr(text)
		if text != "off" {
			return checkAddress(text)
		}
	case *coreList:
		list, err := parseCores(text)
		if err != nil {
			return err
		}
		*p = list
	default:
		panic("setting of a type that parseText does not know: " + v.Type().String())
	}
	return nil
}

// checkBounds applies the min and max tags, which are written like values of the setting.
func checkBounds(f reflect.StructField, v reflect.Value) error {
	low, hasLow := f.Tag.Lookup("min")
	high, hasHigh := f.Tag.Lookup("max")
	if !hasLow || !hasHigh {
		return nil
	}
	bound := func(text string) int64 {
		b := reflect.New(f.Type).Elem()
		if err := parseText(b, text); err != nil {
			panic("bad bound in the tags of " + f.Name)
		}
		return b.Int()
	}
	if n := v.Int(); n < bound(low) || n > bound(high) {
		return fmt.Errorf("want %s to %s", low, high)
	}
	if unit := f.Tag.Get("whole"); unit != "" && v.Int()%bound("1"+unit) != 0 {
		return errShape
	}
	if unit := f.Tag.Get("multiple"); unit != "" && v.Int()%bound(unit) != 0 {
		return fmt.Errorf("want a multiple of %s", unit)
	}
	return nil
}

func checkEnum(f reflect.StructField, text string) error {
	words, ok := f.Tag.Lookup("enum")
	if !ok {
		return nil
	}
	for word := range strings.SplitSeq(words, ",") {
		if text == word {
			return nil
		}
	}
	return errShape
}

// wanted says what a good value of the setting looks like.
func wanted(f reflect.StructField) string {
	if words, ok := f.Tag.Lookup("enum"); ok {
		list := strings.Split(words, ",")
		last := len(list) - 1
		return strings.Join(list[:last], ", ") + " or " + list[last]
	}
	if want := f.Tag.Get("want"); want != "" {
		return want
	}
	if low, ok := f.Tag.Lookup("min"); ok {
		return "a number from " + low + " to " + f.Tag.Get("max")
	}
	return "a number"
}

func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return errShape
	}
	_, err = strconv.ParseUint(port, 10, 16)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("port %s is out of range, want 0 to 65535", port)
	case err != nil:
		return errShape
	}
	return nil
}

// sizeUnits are the endings of a byteSize: powers of 1024 as this program prints them, and
// powers of 1000. The longer ending stands before one that it contains.
var sizeUnits = []struct {
	text  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3},
}

func parseByteSize(text string) (byteSize, error) {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if cut, ok := strings.CutSuffix(text, u.text); ok {
			digits, unit = strings.TrimSpace(cut), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 1<<62/unit {
		return 0, errShape
	}
	return byteSize(n * unit), nil
}

// String is the size in the largest power of 1024 that it is a whole number of.
func (n byteSize) String() string {
	for _, u := range sizeUnits[:3] {
		if n > 0 && int64(n)%u.bytes == 0 {
			return strconv.FormatInt(int64(n)/u.bytes, 10) + u.text
		}
	}
	return strconv.FormatInt(int64(n), 10)
}

// parseCores reads "auto" or a list such as "0-3,6" into ascending processor numbers.
func parseCores(text string) (coreList, error) {
	if text == "auto" {
		return nil, nil
	}
	var in [coreMax]bool
	for part := range strings.SplitSeq(text, ",") {
		lowText, highText, isRange := strings.Cut(part, "-")
		if !isRange {
			highText = lowText
		}
		low, err1 := strconv.ParseUint(lowText, 10, 16)
		high, err2 := strconv.ParseUint(highText, 10, 16)
		if err1 != nil || err2 != nil || low > high || high >= coreMax {
			return nil, errShape
		}
		for c := low; c <= high; c++ {
			if in[c] {
				return nil, fmt.Errorf("processor %d is named twice", c)
			}
			in[c] = true
		}
	}
	var list coreList
	for c, yes := range in {
		if yes {
			list = append(list, c)
		}
	}
	return list, nil
}

// String is the list as the flag takes it.
func (c coreList) String() string {
	if c == nil {
		return "auto"
	}
	var b strings.Builder
	for i := 0; i < len(c); {
		j := i
		for j+1 < len(c) && c[j+1] == c[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(c[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(c[j]))
		}
		i = j + 1
	}
	return b.String()
}
