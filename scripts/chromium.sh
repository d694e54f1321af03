#!/bin/sh
# Print the path of a Chromium that starts, installing one if there is none. CHROMIUM names one; BIN holds playwright.
set -eu

# The headless shell has no window to lay out: the tests of the browser take 0.6 to 0.7 times as much of a CPU by it, so
# that it is installed beside a Chromium that is there.
HEADLESS=chromium-headless-shell
OTHERS="chromium chromium-browser google-chrome"

starts() { "$1" --version >/dev/null 2>&1; }  # Ubuntu's package is a stub that needs snap

find_one_of() {
    for name; do
        path=$(command -v "$name") && starts "$path" && echo "$path" && return
    done
    return 1
}

apt() { DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=15 "$@"; }

install_package() {
    [ "$(id -u)" = 0 ] && command -v apt-get || return 1
    apt install "$1" || { apt update && apt install "$1"; }  # the lists may be missing, or older than the packages
}

install_with_playwright() {
    "$BIN/playwright" install chromium >&2
    "$BIN/python" -c '
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)'
}

if [ -n "${CHROMIUM:-}" ]; then
    find_one_of $CHROMIUM && exit
    echo "CHROMIUM=$CHROMIUM does not start" >&2
    exit 1
fi
find_one_of $HEADLESS && exit
install_package $HEADLESS >&2 && find_one_of $HEADLESS && exit
find_one_of $OTHERS && exit
install_package chromium >&2 && find_one_of $OTHERS && exit
install_with_playwright
