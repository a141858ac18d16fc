package server

import (
	"encoding/json"
	"errors"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"weir/host/fault"
)

// message is the text of the answers that this package gives itself.
func message(status int) string {
	switch status {
	case fiber.StatusBadRequest:
		return "malformed request"
	case fiber.StatusNotFound:
		return "not found"
	case fiber.StatusMethodNotAllowed:
		return "method not allowed"
	case fiber.StatusRequestTimeout:
		return "the request did not arrive in time"
	case fiber.StatusRequestEntityTooLarge:
		return "the request body is too large"
	case fiber.StatusRequestHeaderFieldsTooLarge:
		return "the request header is too large"
	}
	return "internal error"
}

// answerError is Fiber's error handler. It knows statuses only: the library's
// text quotes the request.
func (s *Server) answerError(c *fiber.Ctx, err error) error {
	status := fiber.StatusInternalServerError
	if e, ok := errors.AsType[*fiber.Error](err); ok {
		status = e.Code
	} else {
		s.opts.Logger.Error("a handler failed", "kind", fault.Of(err).String())
	}
	if status == fiber.StatusRequestEntityTooLarge {
		return s.tooLarge(c)
	}
	if status == fiber.StatusBadGateway { // Fiber's word for a connection that broke
		status = fiber.StatusBadRequest
	}
	writeError(c.Context(), status, "")
	return nil
}

// writeError answers {"error": text}; an empty text is the status's own.
func writeError(ctx *fasthttp.RequestCtx, status int, text string) {
	if text == "" {
		text = message(status)
	}
	body, _ := json.Marshal(struct { // a string always has a JSON form
		Error string `json:"error"`
	}{text})
	ctx.SetStatusCode(status)
	ctx.SetContentType(fiber.MIMEApplicationJSON)
	ctx.SetBody(body)
}
