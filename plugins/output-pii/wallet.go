package main

import (
	"bytes"
	"crypto/sha256"
	"math/big"
	"strings"
)

func validCrypto(s string) bool {
	if strings.HasPrefix(s, "bc1") {
		return validBech32(s)
	}
	return validBase58(s)
}

const base58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// validBase58 is Base58Check: 25 bytes, the last four of which begin the double
// SHA-256 of the others.
func validBase58(s string) bool {
	n := new(big.Int)
	for i := range len(s) {
		v := strings.IndexByte(base58, s[i])
		if v < 0 {
			return false
		}
		n.Mul(n, big.NewInt(58)).Add(n, big.NewInt(int64(v)))
	}
	zeros := len(s) - len(strings.TrimLeft(s, "1"))
	raw := append(make([]byte, zeros), n.Bytes()...)
	if len(raw) != 25 {
		return false
	}
	once := sha256.Sum256(raw[:21])
	twice := sha256.Sum256(once[:])
	return bytes.Equal(raw[21:], twice[:4])
}

const bech32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// validBech32 is BIP 173 and BIP 350 for the prefix bc: the checksum of an old
// or a new address.
func validBech32(s string) bool {
	sum := uint32(1)
	for _, v := range [...]byte{'b' >> 5, 'c' >> 5, 0, 'b' & 31, 'c' & 31} {
		sum = polymod(sum, v)
	}
	for _, c := range []byte(s[len("bc1"):]) {
		v := strings.IndexByte(bech32, c)
		if v < 0 {
			return false
		}
		sum = polymod(sum, byte(v))
	}
	return sum == 1 || sum == 0x2bc830a3
}

func polymod(sum uint32, v byte) uint32 {
	top := sum >> 25
	sum = sum&0x1ffffff<<5 ^ uint32(v)
	for i, g := range [...]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
		if top>>i&1 == 1 {
			sum ^= g
		}
	}
	return sum
}
