# The gateway and nothing else. Agents go on top: deploy/docker/agents.Dockerfile.
#
#   docker build -t switchboard:0.1.0 .
#
# What a step does is in scripts/image/, where the tests run it too.

FROM node:20.20.2-bookworm-slim AS page
WORKDIR /src
COPY web web
COPY clients/typescript/src clients/typescript/src
COPY scripts/image scripts/image
RUN scripts/image/page.sh /page

FROM rust:1.95.0-slim-bookworm AS chef
RUN apt-get update \
 && apt-get install -qy --no-install-recommends gcc g++ cmake make \
 && rm -rf /var/lib/apt/lists/* \
 && cargo install --locked --version 0.1.78 cargo-chef
WORKDIR /src

FROM chef AS plan
COPY . .
RUN cargo chef prepare --recipe-path /recipe.json

FROM chef AS build
COPY --from=plan /recipe.json /recipe.json
# Dependencies by themselves: built anew only if Cargo.lock changes.
RUN cargo chef cook --locked --profile dist --bin switchboard --recipe-path /recipe.json
COPY . .
COPY --from=page /page /page
ENV SWITCHBOARD_WEB_DIST=/page
RUN scripts/image/build.sh /switchboard

FROM debian:12.11-slim
# What was mended since the tag. Authorities for agents and for Postgres over TLS; tini takes in what agents
# leave behind.
RUN apt-get update \
 && apt-get upgrade -qy \
 && apt-get install -qy --no-install-recommends ca-certificates tini \
 && rm -rf /var/lib/apt/lists/*
# Straight to its place: a copy that a later step removes would stay in the image.
COPY --from=build /switchboard /usr/local/bin/switchboard
COPY scripts/image/install.sh /tmp/install.sh
RUN /tmp/install.sh /usr/local/bin/switchboard / && rm /tmp/install.sh
USER 10001:10001
WORKDIR /data
ENV SWITCHBOARD__SERVER__LISTEN=0.0.0.0:7717 \
    SWITCHBOARD__DATA__DIR=/data \
    SWITCHBOARD__LOG__FORMAT=json
VOLUME /data
EXPOSE 7717
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["switchboard", "health"]
ENTRYPOINT ["tini", "--", "switchboard"]
CMD ["serve"]
# Last: another revision alone repeats no step.
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Switchboard" \
      org.opencontainers.image.description="Puts a team's coding agents behind a login" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
