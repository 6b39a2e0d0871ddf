-- Tells a pod. KEYS: its stream, its count of messages. ARGV: messages at the most, how long both live (ms), the messages.
for place = 3, #ARGV do
  local number = redis.call('INCR', KEYS[2])
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'number', number, 'message', ARGV[place])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
