# Run by CTest: installs BUILD, configures and builds CONSUMER against it, and runs the program.
set(work ${BUILD}/package-test)
file(REMOVE_RECURSE ${work})

function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed: ${status}")
  endif()
endfunction()

step(install ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIGURATION} --prefix ${work}/prefix
  --component development)
step(configure ${CMAKE_COMMAND} -S ${CONSUMER} -B ${work}/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${work}/prefix
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS} -D CMAKE_EXE_LINKER_FLAGS=${LINKER_FLAGS})
step(build ${CMAKE_COMMAND} --build ${work}/build)
step(run ${work}/build/consumer)
