# An example: the gateway with an agent in it. Build the gateway's image first.
#
#   docker build -t switchboard:0.1.0 .
#   docker build -t switchboard-agents:0.1.0 -f deploy/docker/agents.Dockerfile deploy/docker
#   echo SWITCHBOARD_IMAGE=switchboard-agents:0.1.0 >>.env
#
# and in /data/switchboard.toml:
#
#   [agents.opencode]
#   protocol = "acp"
#   command = ["opencode", "acp"]

FROM node:20.20.2-bookworm-slim AS node
# --ignore-scripts, and then the one script that is wanted: it picks the program for this processor.
RUN npm install --global --ignore-scripts --no-audit --no-fund opencode-ai@1.18.33 \
 && node /usr/local/lib/node_modules/opencode-ai/postinstall.mjs

FROM switchboard:0.1.0
USER root
RUN apt-get update \
 && apt-get install -qy --no-install-recommends git openssh-client ripgrep \
 && rm -rf /var/lib/apt/lists/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules/opencode-ai/bin/opencode.exe /usr/local/bin/opencode
# Where agents keep what they remember; the rest of the file system may be read-only.
ENV HOME=/data
USER 10001:10001
