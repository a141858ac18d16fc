package platform

import "github.com/gofiber/fiber/v2"

// Health answers [PathHealth]. The caller of these routes is always nil.
func (h *Handler) Health(c *fiber.Ctx, _ any) error {
	return answer(c, fiber.MIMEApplicationJSON, health{Status: "healthy", Service: h.opts.Title, Version: h.opts.Version}.encode())
}

// Live answers [PathLive].
func (h *Handler) Live(c *fiber.Ctx, _ any) error {
	return answer(c, fiber.MIMETextPlainCharsetUTF8, []byte("ok"))
}

// Ready answers [PathReady].
func (h *Handler) Ready(c *fiber.Ctx, _ any) error {
	text, ok := h.ready()
	if !ok {
		c.Status(fiber.StatusServiceUnavailable)
	}
	return answer(c, fiber.MIMETextPlainCharsetUTF8, []byte(text))
}

// Manifest answers [PathManifest].
func (h *Handler) Manifest(c *fiber.Ctx, _ any) error {
	return answer(c, fiber.MIMEApplicationJSON, h.opts.Manifest().encode())
}

// answer is of this moment: the next policy has another manifest, and a cached
// health is none.
func answer(c *fiber.Ctx, contentType string, body []byte) error {
	c.Set(fiber.HeaderContentType, contentType)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Send(body)
}
