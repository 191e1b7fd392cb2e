package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// checkDistinct refuses an address that is given twice, which could not be bound the second
// time: the error would tell the operator to stop a program that does not exist.
func checkDistinct(o *serveOptions) error {
	type place struct{ setting, text string }
	places := []place{}
	for _, a := range o.Listen {
		places = append(places, place{"listen", string(a)})
	}
	if o.HTTP != "off" {
		places = append(places, place{"http", string(o.HTTP)})
	}
	seen := map[string]place{}
	for _, p := range places {
		key, any := canonical(p.text)
		if first, twice := seen[key]; twice && !any {
			return fmt.Errorf("%s and %s are the same address; give each only once",
				o.named(first.setting, first.text), o.named(p.setting, p.text))
		}
		seen[key] = p
	}
	return nil
}

// named is a value with where it came from.
func (o *serveOptions) named(setting, text string) string {
	source := o.sources[setting]
	if source == "default" {
		source = "the default of --" + setting
	}
	return source + " " + text
}

// canonical is one text for all ways to write an address, which has passed checkAddress; anyPort
// says that the port is 0, which is a different one each time.
func canonical(text string) (key string, anyPort bool) {
	host, port, _ := net.SplitHostPort(text) //nolint:errcheck // checked when it was read
	n, _ := strconv.ParseUint(port, 10, 16)  //nolint:errcheck // as above
	switch host = strings.ToLower(host); host {
	case "":
		host = "::"
	case "localhost":
		host = "127.0.0.1"
	}
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), n == 0
}
