package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// user is an identity of the token file; its name is also the name of its context.
type user struct {
	name, context string
	groups        []string
	token         string
}

// credentials are the files and secrets of one control plane.
type credentials struct {
	directory    string
	authority    *x509.CertPool
	authorityPEM []byte
	users        map[string]*user
}

// path of a file these credentials wrote: serving.crt, serving.key, service-account.key, tokens.csv.
func (c *credentials) path(name string) string { return filepath.Join(c.directory, name) }

// newCredentials writes a serving certificate for loopback, a key for service accounts and the token file.
func newCredentials(directory string) (*credentials, error) {
	created := &credentials{directory: directory, authority: x509.NewCertPool(), users: map[string]*user{}}
	for _, u := range []user{
		{context: "admin", name: "admin", groups: []string{"system:masters"}},
		// No role is bound to this user: it may discover the API and ask what it may do; a test grants the rest.
		{context: "restricted", name: "restricted", groups: []string{"restricted"}},
		{context: "scheduler", name: "system:kube-scheduler"},
		// Without service accounts the loops share one identity; their own roles are not what is tested.
		{context: "controllers", name: "system:kube-controller-manager", groups: []string{"system:masters"}},
	} {
		secret := make([]byte, 16)
		if _, err := rand.Read(secret); err != nil {
			return nil, err
		}
		u.token = hex.EncodeToString(secret)
		created.users[u.context] = &u
	}
	if err := created.writeCertificate(); err != nil {
		return nil, err
	}
	if err := created.writeTokens(); err != nil {
		return nil, err
	}
	return created, nil
}

func (c *credentials) writeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	// One certificate is its own authority: nothing else is ever signed.
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "controlplane"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(7 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	c.authority.AddCert(certificate)
	c.authorityPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	if err := os.WriteFile(c.path("serving.crt"), c.authorityPEM, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("serving.key"), keyPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.path("service-account.key"), keyPEM, 0o600)
}

func (c *credentials) writeTokens() error {
	var lines strings.Builder
	for _, u := range c.users {
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", u.token, u.name, u.name, strings.Join(u.groups, ","))
	}
	return os.WriteFile(c.path("tokens.csv"), []byte(lines.String()), 0o600)
}

// writeKubeconfig writes a kubeconfig with one context per named user, the first one current, and returns its path.
func (c *credentials) writeKubeconfig(fileName, server string, contexts ...string) (string, error) {
	type object = map[string]any
	var users, entries []object
	for _, name := range contexts {
		users = append(users, object{"name": name, "user": object{"token": c.users[name].token}})
		entries = append(entries, object{"name": name, "context": object{"cluster": "controlplane", "user": name}})
	}
	text, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": contexts[0],
		"clusters": []object{{"name": "controlplane", "cluster": object{
			"server":                     server,
			"certificate-authority-data": c.authorityPEM,
		}}},
		"contexts": entries,
		"users":    users,
	}, "", "  ")
	if err != nil {
		return "", err
	}
	return c.path(fileName), os.WriteFile(c.path(fileName), text, 0o600)
}
