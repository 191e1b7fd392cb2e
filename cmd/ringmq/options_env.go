package main

import (
	"fmt"
	"regexp"
	"strings"
)

const envPrefix = "RINGMQ_"

// foreignEnv are names under our prefix that are no settings and yet no mistakes: those of the
// tests of this repository, and those that Kubernetes sets in each container of a namespace for
// a service called ringmq or ringmq-something.
var foreignEnv = regexp.MustCompile(`^RINGMQ_(TEST_.*|SOAK|BENCH_.*` +
	`|(.*_)?SERVICE_HOST|(.*_)?SERVICE_PORT(_.*)?|(.*_)?PORT|(.*_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$`)

// parseEnviron picks the settings out of an environment. A name with our prefix that no setting
// has is refused: a mistyped limit that is silently ignored is found out in production.
func parseEnviron(environ []string, list []setting) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if findEnv(list, name) == nil {
			if foreignEnv.MatchString(name) {
				continue
			}
			plain := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
			if s := findSetting(list, plain); s != nil {
				return nil, fmt.Errorf("%s: %s", name, elsewhere(s))
			}
			return nil, fmt.Errorf("%s: unknown environment variable%s", name, suggest(plain, list, envName))
		}
		out[name] = text
	}
	return out, nil
}

func findEnv(list []setting, name string) *setting {
	for i := range list {
		if list[i].env == name {
			return &list[i]
		}
	}
	return nil
}

// elsewhere says where a setting can be given that was given in the wrong place.
func elsewhere(s *setting) string {
	if s.env == "" {
		return "can only be given as the flag --" + s.name
	}
	if s.key {
		return "is spelled " + s.env + " in the environment"
	}
	return "can only be given as the flag --" + s.name + " or the environment variable " + s.env
}
