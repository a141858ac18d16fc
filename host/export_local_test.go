package host

// LocalUser is the user of a listener without a key.
func LocalUser(listener string) string { return local(listener).Request.Principal.UserID }

// InFiles is [inFiles].
var InFiles = inFiles
