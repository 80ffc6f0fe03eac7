package main

import (
	"fmt"
	"sort"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// settings are the choices a caller has: which features are on and which API versions are served.
type settings struct {
	featureGates  map[string]string
	runtimeConfig map[string]string
}

// profiles hold what differs from the defaults of the Kubernetes version built in. Gates that it does not know are
// left out.
//
// The full profile has the gates of DeviceTaintRule on in the scheduler too: the crash that rules caused there was in
// 1.36.0 to 1.36.2 only. Up to 1.35 DRADeviceTaints is off by default, and rules need it. DRAResourcePoolStatus (alpha)
// adds the kind ResourcePoolStatusRequest and changes no other behaviour.
var profiles = map[string]settings{
	"defaults": {},
	"full": {
		featureGates: map[string]string{
			"DRADeviceTaints":       "true",
			"DRADeviceTaintRules":   "true",
			"DRAResourcePoolStatus": "true",
		},
		runtimeConfig: map[string]string{
			"resource.k8s.io/v1beta1":  "true",
			"resource.k8s.io/v1beta2":  "true",
			"resource.k8s.io/v1alpha3": "true",
		},
	},
}

// newSettings adds the caller's gates and API versions to those of a profile.
func newSettings(profileName, gates, runtimeConfig string) (settings, error) {
	profile, ok := profiles[profileName]
	if !ok {
		return settings{}, fmt.Errorf("unknown profile %q: full or defaults", profileName)
	}
	mergedGates, err := merge(knownGates(profile.featureGates), gates)
	if err != nil {
		return settings{}, fmt.Errorf("--feature-gates: %w", err)
	}
	mergedConfig, err := merge(profile.runtimeConfig, runtimeConfig)
	if err != nil {
		return settings{}, fmt.Errorf("--runtime-config: %w", err)
	}
	return settings{featureGates: mergedGates, runtimeConfig: mergedConfig}, nil
}

// knownGates leaves out the gates that this version of Kubernetes would refuse to start with.
func knownGates(gates map[string]string) map[string]string {
	registered := utilfeature.DefaultMutableFeatureGate.GetAll()
	known := map[string]string{}
	for name, value := range gates {
		if _, ok := registered[featuregate.Feature(name)]; ok {
			known[name] = value
		}
	}
	return known
}

func merge(base map[string]string, text string) (map[string]string, error) {
	merged := map[string]string{}
	for key, value := range base {
		merged[key] = value
	}
	for _, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("%q is not KEY=VALUE", pair)
		}
		merged[key] = value
	}
	return merged, nil
}

// flagFor gives ["--name=a=x,b=y"], or nothing when there is nothing to say.
func flagFor(name string, values map[string]string) []string {
	if len(values) == 0 {
		return nil
	}
	pairs := make([]string, 0, len(values))
	for key, value := range values {
		pairs = append(pairs, key+"="+value)
	}
	sort.Strings(pairs)
	return []string{"--" + name + "=" + strings.Join(pairs, ",")}
}
