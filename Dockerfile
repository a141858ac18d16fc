# The image that `make image` writes without a container engine, for whoever
# has one: the same files, made by the same program, on the same empty base.
#
#   docker build --build-arg VERSION="$(cat .image-version)" --build-arg COMMIT="$(git rev-parse HEAD)" .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG COMMIT=unknown
RUN make image COMMIT="$COMMIT" IMAGE="--root /rootfs"

# Nothing but the program, its policy, certificates and a user: no shell, no
# package manager, no library.
FROM scratch
ARG COMMIT=unknown
ARG VERSION=unknown
LABEL org.opencontainers.image.title="support-tickets-agent"
LABEL org.opencontainers.image.description="an agent on weir: a host whose policy is WebAssembly modules"
LABEL org.opencontainers.image.version="$VERSION"
LABEL org.opencontainers.image.revision="$COMMIT"
ENV PATH=/usr/local/bin
ENV AGENT_BUILD_COMMIT=$COMMIT
ENV WEIR_STATE_DIR=/var/lib/weir
COPY --from=build /rootfs/ /
# What the user writes to. Not every builder keeps owners.
COPY --from=build --chown=1001:1001 /rootfs/app/plugins/dist/.cache /app/plugins/dist/.cache
COPY --from=build --chown=1001:1001 /rootfs/var/lib/weir /var/lib/weir
WORKDIR /app
USER 1001:1001
VOLUME ["/app/plugins/dist/.cache", "/var/lib/weir"]
EXPOSE 8000
STOPSIGNAL SIGTERM
# The program itself asks, because there is no shell and no curl.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 CMD ["/usr/local/bin/weir", "probe", "http", "http://127.0.0.1:8000/health"]
ENTRYPOINT ["/usr/local/bin/weir"]
CMD ["serve"]
