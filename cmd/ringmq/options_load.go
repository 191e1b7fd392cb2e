package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// errHelp is returned by loadOptions when help was asked for.
var errHelp = errors.New("help requested")

// setting is one field of serveOptions with its tags read.
type setting struct {
	field reflect.StructField
	value reflect.Value
	name  string
	env   string // "" when the environment cannot set it
	key   bool   // a configuration file may set it
	list  bool   // may be given several times
}

// settings lists the fields of o in their order.
func settings(o *serveOptions) []setting {
	v := reflect.ValueOf(o).Elem()
	var list []setting
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("name")
		if name == "" {
			continue
		}
		s := setting{field: f, value: v.Field(i), name: name,
			list: f.Type == reflect.TypeFor[[]address]()}
		only := f.Tag.Get("only")
		s.key = only == ""
		if only == "" || only == "flag,env" {
			s.env = "RINGMQ_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		}
		list = append(list, s)
	}
	return list
}

// set reads the texts into the setting; only a list takes more than one.
func (s *setting) set(texts []string) error {
	if !s.list {
		return parseSetting(s.field, s.value, texts[len(texts)-1])
	}
	out := reflect.MakeSlice(s.field.Type, len(texts), len(texts))
	for i, text := range texts {
		if err := parseSetting(s.field, out.Index(i), text); err != nil {
			return err
		}
	}
	s.value.Set(out)
	return nil
}

// text is the setting's value in the form that set takes.
func (s *setting) text() string {
	if d, ok := s.value.Interface().(time.Duration); ok {
		text := strings.Replace(d.String(), "m0s", "m", 1) // 1h0m0s -> 1h
		return strings.Replace(text, "h0m", "h", 1)
	}
	if !s.list {
		return fmt.Sprint(s.value.Interface())
	}
	var parts []string
	for i := range s.value.Len() {
		parts = append(parts, s.value.Index(i).String())
	}
	return strings.Join(parts, ",")
}

// loadOptions reads the settings: flags win over the environment, that over the configuration
// file, that over the defaults. environ is in the form of os.Environ. Its error is one line that
// names the setting at fault.
func loadOptions(args, environ []string) (*serveOptions, error) {
	o := &serveOptions{sources: map[string]string{}}
	list := settings(o)
	flags, err := parseFlags(args, list)
	if err != nil {
		return nil, err
	}
	env, err := parseEnviron(environ, list)
	if err != nil {
		return nil, err
	}
	given := map[string][]string{} // the winning texts by setting
	for _, s := range list {
		given[s.name], o.sources[s.name] = []string{s.field.Tag.Get("default")}, "default"
		if text, ok := env[s.env]; ok {
			given[s.name], o.sources[s.name] = splitList(s, text), s.env
		}
		if texts, ok := flags[s.name]; ok {
			given[s.name], o.sources[s.name] = texts, "--"+s.name
		}
	}
	if paths := given["config"]; paths[len(paths)-1] != "" {
		path := paths[len(paths)-1]
		file, err := readConfigFile(path, list)
		if err != nil {
			return nil, err
		}
		for name, v := range file {
			if o.sources[name] == "default" {
				given[name], o.sources[name] = v.texts, v.source
			}
		}
	}
	for i := range list {
		s := &list[i]
		if err := s.set(given[s.name]); err != nil {
			return nil, fmt.Errorf("%s: bad value %q: %w",
				o.sources[s.name], strings.Join(given[s.name], ","), err)
		}
	}
	return o, checkDistinct(o)
}

func splitList(s setting, text string) []string {
	if !s.list {
		return []string{text}
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// parseFlags collects the texts given by flags: --name value, --name=value, and of a boolean a
// bare --name for true. One dash does as well as two. Of a setting that is given twice the last one counts,
// so that a script can append to a command line; a list gathers all.
func parseFlags(args []string, list []setting) (map[string][]string, error) {
	out := map[string][]string{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "-h" || arg == "-help" || arg == "--help" {
			return nil, errHelp
		}
		body, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag || body == "" {
			return nil, fmt.Errorf("unexpected argument %q; settings are given as --name value", arg)
		}
		name, text, hasText := strings.Cut(strings.TrimPrefix(body, "-"), "=")
		s := findSetting(list, name)
		if s == nil {
			return nil, fmt.Errorf("unknown flag --%s%s", name, suggest(name, list, flagName))
		}
		switch {
		case hasText:
		case s.field.Type.Kind() == reflect.Bool:
			text = "true"
			if len(args) > 0 && (args[0] == "true" || args[0] == "false") {
				text, args = args[0], args[1:]
			}
		case len(args) == 0:
			return nil, fmt.Errorf("--%s: a value is missing: want %s", name, wanted(s.field))
		default:
			text, args = args[0], args[1:]
		}
		out[name] = append(out[name], splitList(*s, text)...)
	}
	return out, nil
}

func findSetting(list []setting, name string) *setting {
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}
