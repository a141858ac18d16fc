package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"weir/host/fault"
)

// callerKey is where the gate leaves the caller for the routes.
type callerKey struct{}

// serve is the outermost handler.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	defer s.observe(ctx)()
	defer func() {
		if p := recover(); p != nil {
			// The value may hold text of a request; its type does not.
			s.opts.Logger.Error("a handler panicked", "class", fmt.Sprintf("%T", p))
			ctx.Response.Reset()
			writeError(ctx, fasthttp.StatusInternalServerError, "")
			ctx.SetConnectionClose()
		}
	}()
	if s.malformed(ctx) {
		writeError(ctx, fasthttp.StatusBadRequest, "")
		ctx.SetConnectionClose()
		return
	}
	if !slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
		// Fiber answers an unknown method before any handler of ours, so also
		// before authentication. No route has this one either.
		ctx.Request.Header.SetMethod(fiber.MethodTrace)
	}
	s.route(ctx)
}

// malformed reports whether the request may mean different things to different
// readers. It also ends connections that the scanner can no longer follow.
func (s *Server) malformed(ctx *fasthttp.RequestCtx) bool {
	c, ok := ctx.Conn().(*conn)
	if !ok || c.scan.bad {
		return true
	}
	if c.scan.state == scanBlind {
		ctx.SetConnectionClose()
	}
	// The library mixes trailers with headers, so one could add an identity
	// after every check that a proxy makes.
	trailer := false
	for range ctx.Request.Header.Trailers() {
		trailer = true
	}
	return trailer
}

// strangerBody is the largest body that is read before anybody is known. The
// library takes the memory for a body when it has read the head, so a few
// thousand connections that send heads alone would take all there is.
const strangerBody = 16 << 10

// expect bounds the body of a request whose head has arrived.
func (s *Server) expect(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	c := fasthttp.RequestConfig{ReadTimeout: s.opts.BodyTimeout}
	if _, err := s.opts.Authenticate(glimpse{header{h}}); err != nil {
		c.MaxRequestBodySize = min(strangerBody, s.opts.BodyLimit)
	}
	return c
}

// tooLarge answers a request whose body is larger than expect allows, a stranger
// as authentication does. Of a body in chunks the library has forgotten the head
// by now, so it is called too large whoever sends it.
func (s *Server) tooLarge(c *fiber.Ctx) error {
	_, public := s.public[rawPath(c.Context())]
	if forgotten := len(c.Request().Header.Host()) == 0; !public && !forgotten {
		if _, err := s.opts.Authenticate(glimpse{header{&c.Request().Header}}); err != nil {
			return deny(c, err)
		}
	}
	writeError(c.Context(), fiber.StatusRequestEntityTooLarge, "")
	return nil
}

// glimpse is a head that authentication looks at and leaves as it is.
type glimpse struct{ header }

// Del implements [Header].
func (glimpse) Del(string) {}

// gate answers the public paths and lets nothing else pass without a caller.
func (s *Server) gate(c *fiber.Ctx) error {
	path := rawPath(c.Context())
	if handle, ok := s.public[path]; ok {
		if x, ok := c.Context().UserValue(exchangeKey{}).(*exchange); ok {
			x.route, x.health = path, strings.HasPrefix(path, "/health")
		}
		return handle(c)
	}
	caller, err := s.opts.Authenticate(header{&c.Request().Header})
	if err != nil {
		return deny(c, err)
	}
	if path != c.Path() {
		return fiber.ErrNotFound // the library read another path out of the target
	}
	c.Locals(callerKey{}, caller)
	return c.Next()
}

// rawPath is the request target up to its query, as it came.
func rawPath(ctx *fasthttp.RequestCtx) string {
	path, _, _ := bytes.Cut(ctx.RequestURI(), []byte("?"))
	return string(path)
}

// deny answers a refusal of authentication; its text is fixed.
func deny(c *fiber.Ctx, err error) error {
	status := fiber.StatusBadRequest
	if fault.Of(err) == fault.Unauthenticated {
		status = fiber.StatusUnauthorized
		if fault.CodeOf(err) == "key" {
			c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
		}
	}
	writeError(c.Context(), status, err.Error())
	return nil
}

// header shows a request's head to authentication.
type header struct{ h *fasthttp.RequestHeader }

// Values implements [Header].
func (h header) Values(name string) []string {
	var values []string
	for _, v := range h.h.PeekAll(name) {
		values = append(values, string(v))
	}
	return values
}

// Del implements [Header].
func (h header) Del(name string) { h.h.Del(name) }

// publicPaths are the only paths without authentication, matched byte for byte.
func (s *Server) publicPaths() map[string]fiber.Handler {
	paths := map[string]fiber.Handler{}
	for _, r := range s.opts.Public {
		paths[r.Path] = public(r)
	}
	return paths
}

// public lets GET and HEAD through.
func public(r Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if m := c.Method(); m != fiber.MethodGet && m != fiber.MethodHead {
			c.Set(fiber.HeaderAllow, "GET, HEAD")
			return fiber.ErrMethodNotAllowed
		}
		return r.Handle(c, nil)
	}
}
