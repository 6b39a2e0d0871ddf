-- Forgets a connection. KEYS: the online hash. ARGV: reader, connection.
local kept = {}
for _, connection in ipairs(live(redis.call('HGET', KEYS[1], ARGV[1]), now_ms())) do
  if connection[1] ~= ARGV[2] then
    kept[#kept + 1] = connection
  end
end
if #kept == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(kept))
end
