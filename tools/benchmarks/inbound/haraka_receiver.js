'use strict'
// Plugin of Haraka that lets the benchmark deliver from loopback addresses and answers DNS from its zone.
const dns = require('node:dns')

exports.register = function () {
  const servers = [this.config.get('zone.json').server]
  dns.setServers(servers)
  dns.promises.setServers(servers)
}

// SPF is not checked for private addresses.
exports.hook_connect = function (next, connection) {
  connection.remote.is_private = false
  next()
}

exports.hook_rcpt = (next) => next(OK)
