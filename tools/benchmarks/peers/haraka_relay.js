'use strict'
// Plugin of Haraka that relays everything to the sink of the benchmark.

exports.register = function () {
  this.sink = this.config.get('sink.json')
}

exports.hook_connect = function (next, connection) {
  connection.relaying = true
  next()
}

exports.hook_mail = (next) => next(OK)

exports.hook_rcpt = (next) => next(OK)

exports.hook_get_mx = function (next) {
  next(OK, { priority: 0, exchange: '127.0.0.1', port: this.sink.port })
}
