#!/bin/sh
# Print the path of a Chromium that starts, installing one if there is none. CHROMIUM names one; BIN holds playwright.
set -eu

# The headless shell comes first: it has no window to lay out, and the tests of the browser take 0.6 times as long by it.
SHELL_FIRST="chromium-headless-shell chromium chromium-browser google-chrome"

starts() { "$1" --version >/dev/null 2>&1; }  # Ubuntu's package is a stub that needs snap

find_chromium() {
    for name in ${CHROMIUM:-$SHELL_FIRST}; do
        path=$(command -v "$name") && starts "$path" && echo "$path" && return
    done
    return 1
}

install_package() {
    [ "$(id -u)" = 0 ] && command -v apt-get || return 1
    apt-get update -qq || return 1
    for package in chromium-headless-shell chromium; do  # only Debian has the former
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" && return
    done
    return 1
}

install_with_playwright() {
    "$BIN/playwright" install chromium >&2
    "$BIN/python" -c '
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)'
}

find_chromium && exit
if [ -n "${CHROMIUM:-}" ]; then
    echo "CHROMIUM=$CHROMIUM does not start" >&2
    exit 1
fi
install_package >&2 && find_chromium && exit
install_with_playwright
